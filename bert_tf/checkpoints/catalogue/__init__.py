"""The 33 released models: their names, download and unpacking."""
