"""Finds passages for queries with a bi-encoder and reranks them with a cross-encoder.

A bi-encoder embeds queries and passages separately. The passages of a corpus are
embedded once, and a query then costs one forward pass and a search over vectors, so it
can search millions of passages. A cross-encoder reads a query and a passage together:
attention compares every word with every other, which ranks better but costs a forward
pass per pair. So the bi-encoder provides the recall: it finds the candidates. The
cross-encoder provides the ranking: it orders the best of them.

Reading order: `examples` and `corpus` read files, `features` converts them, `source`
builds training batches and draws negatives, `encoding` applies a model to texts,
`passage_index` stores the vectors of a corpus, `search` finds the nearest ones,
`ranking` combines these steps, `scores` and `predictions` report the results,
`workflow` is the whole task, and `predictor` loads a finished run. The models are in
`modeling.rankers`.
"""
