"""Training, evaluating and using the pretraining model.

Read `workflow` first: `model_setup` finds configuration, vocabulary and checkpoint and
builds the model, `examples` opens records or text, and `scores` evaluates. `predictor`
uses a trained model: it is what `bert_tf.load` returns, and `fill_mask` is its tool.
"""
