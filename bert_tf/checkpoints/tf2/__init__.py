"""TensorFlow 2's formats: SavedModels, and checkpoints of the Model Garden. Read only.

Both formats read weights with `object_graph` and `garden_names`; `saved_model_graph`
looks into a SavedModel's functions.
"""
