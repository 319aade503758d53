"""Converts a checkpoint to another format and verifies the result."""
