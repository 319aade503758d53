"""The fine-tuning tasks: one folder each, none of which imports another."""
