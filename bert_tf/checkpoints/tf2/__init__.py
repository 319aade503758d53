"""SavedModels of TF Hub and object-based checkpoints of the Model Garden."""
