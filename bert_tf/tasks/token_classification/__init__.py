"""Tags for words: named entities, parts of speech, whatever has a column of tags.

In the order that a sentence takes: `column_files` and `examples` read it, `schemes`
knows what its tags may be, `true_casing` mends headlines, `features` makes it rows of
word pieces, `model` has the tag head, `scores` and `predictions` say what came out,
`workflow` tells the whole story, and `trained` answers from the folder of a finished
run.
"""
