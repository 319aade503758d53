"""Passages for queries: a bi-encoder finds them, a cross-encoder ranks them again.

In the order that a row takes: `examples` reads queries and `corpus` passages,
`features` makes them columns, `source` batches with drawn negatives, `model` has both
encoders, `encoding` applies them to texts, `passage_index` keeps a corpus's vectors,
`search` finds the nearest ones, `scores`, `predictions` and `card` say what came out,
`workflow` tells the whole story, and `trained` answers from a finished run's folder.
"""
