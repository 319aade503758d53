"""Multiple choice: which ending continues a text? SWAG, CODAH, your own tables.

The modules in the order in which a run uses them:

- `examples` reads tables. `data_sets` describes the published data sets.
- `features` turns examples into model inputs.
- `scores`, `predictions` and `card` report results.
- `workflow` puts all of this together. `predictor` loads a finished run.
- `checks` inspects data before training.
"""
