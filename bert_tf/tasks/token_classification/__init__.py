"""Token classification: assigns a tag to each word, such as named entities.

From file to tags, module by module:

1. `task` is the declaration that `fine_tuning.run` runs.
2. `examples` reads tagged sentences and plain text, which `tokenization.words` splits.
3. `schemes` recognizes the tag scheme and lists the tags of the model.
4. `features` converts words to rows of word pieces with one tag per word. It also has
   the record and the predictor of a finished run.
5. `scores` computes precision, recall and F1.
"""
