"""Question answering: finds the answer to a question in a text (SQuAD 1.1 and 2.0).

How an answer is chosen, module by module:

1. `task` declares data, scores and files, and answers questions with a finished run.
2. `features` divides a long context into overlapping windows and fills them.
3. `predictions` turns the start and end logits of the windows into ranked spans, these
   into n-best lists, and decides whether there is no answer.
4. `alignment` maps the word pieces of a span back to characters of the context.
5. `scores` computes exact match and F1.

`examples` reads SQuAD's JSON. `predictions` also says what `task.json` holds.
"""
