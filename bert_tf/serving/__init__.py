"""Uses trained models: in Python, as a SavedModel, and from a server.

`predictors` loads the model of a run or a checkpoint, `export` writes a SavedModel, and
`query` queries a SavedModel on disk (`loaded_model`) or on a server through a `client`.

A SavedModel takes text and returns answers, so all processing around the model is
reimplemented with TensorFlow ops. Its functions are in `row_signatures` (labels,
numbers, endings, vectors, masked words), `span_signatures` and `tag_signatures`, which
use `signatures` (the base class), `word_splitting`, `answer_spans` and
`data.graph_packing` (ids to rows).

`server` serves an export: `server_app` has its paths, `server_formats` its requests and
answers, and `server_model` its queue.
"""
