"""TensorFlow 2's formats: SavedModels, and checkpoints of the Model Garden.

`saved_model` and `model_garden` are the two formats. Both read weights with
`object_graph` and `garden_names`; `saved_model_graph` looks into a SavedModel's
functions, and `saved_model_writing` writes SavedModels.
"""
