"""Finds passages for queries with a bi-encoder and reranks them with a cross-encoder.

A bi-encoder embeds queries and passages separately. The passages of a corpus are
embedded once, and a query then costs one forward pass and a search over vectors, so it
can search millions of passages. A cross-encoder reads a query and a passage together:
attention compares every word with every other, which ranks better but costs a forward
pass per pair. So the bi-encoder provides the recall: it finds the candidates. The
cross-encoder provides the ranking: it orders the best of them.

Reading order: `task` declares the task, `examples` reads queries and passages,
`features` builds training batches and draws negatives, `search` computes and stores
vectors and finds the nearest ones, `scores` scores rankings, and `predictor` applies a
finished model. The models are in `modeling.rankers`.
"""
