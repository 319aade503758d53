"""One training loop for every task.

Start with `loop` (what happens in a run) and `steps` (what happens in a step).
`options` has the records that the parts take, and `protocols` what a model and a source
of examples must offer.
"""
