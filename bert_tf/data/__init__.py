"""Text files, TFRecord files and tables: reading, writing, batching and checking."""
