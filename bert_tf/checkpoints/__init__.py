"""Weights on disk, in the release's own format and in those of others.

Read in this order: names, native, state_file, rotation; head, source, native_folder,
formats, loading, run_files, starting_point. Conversion: conversion_source, target,
probe, comparison, conversion_report, conversion. Hugging Face: the folder hugging_face.
Keras's own files: keras_archive, keras_layout, keras_settings, keras_files. KerasHub:
keras_hub_models, keras_hub_preset, keras_hub_writing. The Model Garden and TF Hub:
garden_names, object_graph, model_garden; saved_model_graph, saved_model,
saved_model_writing. The released models: catalogue, downloading, unpacking, fetching.
"""

import importlib


def __getattr__(name):
    # Loaded on first use: whoever imports this package needs no Keras yet.
    if name == "fetch":
        return importlib.import_module("bert_tf.checkpoints.catalogue.fetching").fetch
    raise AttributeError(f"module 'bert_tf.checkpoints' has no attribute {name!r}")
