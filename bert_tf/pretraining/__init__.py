"""Pretraining: text to masked sentence pairs, the two tasks on them, their scores."""
