"""A start and several endings, of which one goes on best: SWAG, CODAH, own tables.

In the order that a row takes: `examples` reads it, `data_sets` knows the published
ones, `features` makes it columns, `model` has the choice head, `scores`, `predictions`
and `card` say what came out, `workflow` tells the whole story, and `trained` answers
from the folder of a finished run.
"""
