"""What all fine-tuning tasks share.

- `options`: the flags of every fine-tuning tool.
- `task`: what a task declares; `tasks`: the table of tasks.
- `run`: runs any task.
- `task_record`: the base of the record in `task.json`, and what a run starts from.
- `trials`: searches.
- `run_report`: the model card of a run, and its report as a web page.
- `predictor`: the base of the predictors that `bert_tf.load` returns; `given_data`:
  what they accept.
- `checks`: what the data checks of the tasks share.
"""
