"""Runs independent tasks in local worker processes or on Apache Beam."""
