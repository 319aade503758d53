"""Runs independent tasks in worker processes or on Apache Beam."""
