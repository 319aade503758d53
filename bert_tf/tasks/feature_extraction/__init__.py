"""Vectors of texts and of their word pieces, from any layer of an encoder.

`extraction` reads lines and runs the encoder, and `workflow` writes the vectors. Python
programs use `bert_tf.embed`, or `bert_tf.BertModel` for the vectors of word pieces.
"""
