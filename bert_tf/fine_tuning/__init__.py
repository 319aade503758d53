"""What all fine-tuning tasks share.

- `options`: the flags of every fine-tuning tool.
- `task_record`: the base of the record in `task.json`.
- `run_setup`: finds configuration, vocabulary and checkpoint of a run, and checks that
  they agree.
- `workflow`: trains, evaluates and predicts as the options say.
- `trials`, `trial_options`, `trial_estimates`: restarts and searches.
- `model_card`: the README of a run.
- `run_report`: the report of a run as a web page.
- `predictor`: the base of the predictors that `bert_tf.load` returns; `input_items`:
  what they accept.
- `checks`: what the data checks of the tasks share.
"""
