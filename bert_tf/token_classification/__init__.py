"""Tags for words: named entities, parts of speech and whatever has a column of tags.

In the order that a sentence takes: `examples` reads it, `features` makes it rows of
word pieces, `model` has the tag head, `scores` and `predictions` say what came out.
"""
