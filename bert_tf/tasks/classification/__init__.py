"""Classes, several of them or numbers for texts and pairs: GLUE, XNLI, own tables.

In the order that a row takes: `examples` reads it, with `label_kinds` saying what a
label may be; `glue`, `xnli` and `tfds` know the released tasks, and `processors` who is
asked for. `windows` and `features` make rows columns, `parts` keeps those of a run.
`model` has the heads; `scores`, `evaluation` and `predictions` say what came out;
`workflow` tells the whole story, and `trained` answers from the folder of a finished
run. `glue_table` puts the scores of all GLUE tasks together.
"""
