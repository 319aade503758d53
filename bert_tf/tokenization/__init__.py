"""Raw text to word pieces to ids.

Read in this order: characters, basic, wordpiece, vocabulary, full (the release's
tokenizers in plain Python, the reference), code_points and in_graph (the same ids from
TensorFlow ops), learning (a vocabulary from text).
"""
