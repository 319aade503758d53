"""Classification and regression of texts and text pairs: GLUE, XNLI, your own tables.

The modules in the order in which a run uses them:

- `examples` reads tables, and `label_kinds` checks their labels. `glue`, `xnli`, `tfds`
  and `own_tables` describe the data sets, and `processors` selects one of them.
- `windows` and `features` turn examples into model inputs. `parts` contains those of a
  run. `class_weights` and `distillation` modify the loss.
- `scores`, `evaluation`, `predictions` and `card` report results.
- `workflow` puts all of this together. `predictor` loads a finished run.
- `checks` inspects data before training. `glue_table` collects the scores of all GLUE
  tasks.
"""
