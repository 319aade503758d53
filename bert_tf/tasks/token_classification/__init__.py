"""Token classification: assigns a tag to each word, such as named entities.

From file to tags, module by module:

1. `workflow` runs the stages: read, convert to features, train, score, predict.
2. `column_files` and `examples` read sentences; `plain_text` and `words` read text.
3. `schemes` recognizes the tag scheme, and `labels` lists the tags of the model.
4. `true_casing` restores the case of sentences in capitals.
5. `features` converts words to rows of word pieces with one tag per word.
6. `scores` computes precision, recall and F1; `predictions` writes the tags.

`predictor` tags sentences with a finished run.
"""
