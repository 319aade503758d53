"""The encoder and its heads in `keras.ops`: ids -> vectors.

Read in this order: config, numerics, embeddings, attention, encoder, bert, heads.
"""
