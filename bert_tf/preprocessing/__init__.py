"""Strings to features, as a checkpoint expects them, and models with their tokenizer.

- `tokenizer`: `FullTokenizer` from a folder or name; called, it returns features.
- `text_preprocessor`: the same as a Keras layer, for tf.data and Functional models.
- `pretrained`: a model and its tokenizer from one call.

Importing `text_preprocessor` needs TensorFlow Text; the other modules do not.
"""
