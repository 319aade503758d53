"""Multiple choice: which ending continues a text? SWAG, CODAH, your own tables.

The modules in the order in which a run uses them:

- `examples` reads tables, and describes those of the published data sets.
- `features` turns examples into model inputs.
- `predictions` turns the outputs of the model into answers.
- `task` declares all of this. `fine_tuning.run` runs it.
"""
