"""Multiple choice: which ending continues a text? SWAG, CODAH, your own tables.

The modules in the order in which a run uses them:

- `examples` reads tables, and describes those of the published data sets.
- `features` turns examples into model inputs.
- `task` declares all of this, and turns the outputs of the model into answers.
  `fine_tuning.run` runs it.
"""
