"""Questions answered by a span of a text: SQuAD 1.1 and 2.0.

In the order that a question takes: `examples` reads it, `features` cuts its context
into windows, `model` has the span head, `predictions` puts the windows' answers back
together, `scores` compares them with the true ones, `workflow` tells the whole story,
and `trained` answers from the folder of a finished run.
"""
