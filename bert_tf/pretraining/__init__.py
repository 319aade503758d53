"""Training, evaluating and using the pretraining model.

Read `workflow` first: `model_setup` finds configuration, vocabulary and checkpoint,
`objectives` builds the model, `dynamic_masking` draws masks while training if the
records have none, and `scores` evaluates. `phases` runs several settings in a row.
`predictions`, `fill_mask` and `likelihood` use a trained model, and `predictor` is what
`bert_tf.load` returns for it; `task` describes it in a SavedModel.
"""
