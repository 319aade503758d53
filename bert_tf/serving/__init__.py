"""From a run folder to answers: in Python, as a SavedModel, from a server.

`runs` answers in this process, `export` writes a SavedModel, and `query` asks one
through a `client`, on disk or behind a server. What a SavedModel answers stands in a
module for each task: `class_signatures`, `span_signatures`, `tag_signatures`,
`choice_signatures`, `vector_signatures`; what these share in `signatures`, `rows` and
`text_words`.
"""
