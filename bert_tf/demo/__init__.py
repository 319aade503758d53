"""The demo: every stage from raw text to a served answer, run as a user runs it."""
