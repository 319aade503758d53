"""Raw text of any kind to one sentence per line, with blank lines between documents.

`inputs` finds files and groups them. `workflow` writes the sentences of
each group as a part, in parallel, and then the parts as the files of the corpus.
`documents` knows the formats, with `prose` and `wikitext`.
"""
