"""What all fine-tuning tasks share: run set-up, searches, the model card."""
