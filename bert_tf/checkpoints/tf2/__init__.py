"""TensorFlow 2's formats, read only: SavedModels, checkpoints of the Model Garden."""
