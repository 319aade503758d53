"""From a run folder to answers: in Python, as a SavedModel, from a server.

`runs` answers in this process, `export` writes a SavedModel with the signatures of
`signatures`, and `query` asks one through a `client`, on disk or behind a server.
"""
