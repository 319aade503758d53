"""The release's own checkpoint format, which is also this package's."""
