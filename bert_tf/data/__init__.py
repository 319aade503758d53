"""Text to packed rows to TFRecord files to batches; shared by all tasks."""
