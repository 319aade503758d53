"""Vectors of texts and of their word pieces, from any layer of an encoder.

Python programs use `bert_tf.embed`, or `bert_tf.BertModel` for the vectors of word
pieces.
"""
