"""The demo: runs every stage from raw text to a served answer with the tools."""
