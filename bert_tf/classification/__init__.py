"""Classes for sentences and pairs of sentences: CoLA, SST-2, MRPC and own tables.

In the order that a row takes: `examples` reads it, `glue` knows the released tasks,
`features` makes it columns, `model` has the class head, `scores` and `predictions`
say what came out, `workflow` tells the whole story, and `trained` answers from the
folder of a finished run.
"""
