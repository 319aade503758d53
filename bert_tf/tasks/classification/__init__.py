"""Classification and regression of texts and text pairs: GLUE, XNLI, your own tables.

The modules in the order in which a run uses them:

- `task` is the declaration that `fine_tuning.run` runs.
- `examples` reads tables. `glue`, `xnli` and `data_sets` describe the data sets.
- `features` has the record of a model, and turns examples into model inputs.
- `loss` has class weights and distillation.
- `predictions` has the answers and the predictor; `scores` compares answers and labels.
"""
