"""One training loop for every task.

Start with `loop` (what happens in a run) and `steps` (what happens in a step).
`options` has the records that the parts take. A model is a `modeling.heads.TaskModel`,
and examples are a `data.batching.Source`.
"""
