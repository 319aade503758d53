"""Sentences to masked records: what `create_pretraining_data` does."""
