"""Classification and regression of texts and text pairs: GLUE, XNLI, your own tables.

The modules in the order in which a run uses them:

- `task` is the declaration that `fine_tuning.run` runs.
- `examples` reads tables. `glue` describes the published data sets.
- `features` turns examples into model inputs, with the weights of their classes.
- `predictions` has the record of a model, its answers, predictor and teacher.
- `scores` compares answers and labels, and collects the scores of GLUE.
"""
