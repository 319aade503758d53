"""What all fine-tuning tasks share: run setup, searches, the model card."""
