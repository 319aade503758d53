"""Raw text to word pieces to ids.

Read in this order:

- `characters`, `basic`, `wordpiece`, `vocabulary`, `full`: the release's
  tokenizers in plain Python, which are the reference.
- `in_graph_words`, `in_graph`: the same ids from TensorFlow ops.
- `words`: words of plain text, for tasks that give every word a tag.
- `learning`, `workflow`: learning a vocabulary from text.
"""
