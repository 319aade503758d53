"""What all tasks share: the number of steps, and the order of the work."""

import types

import pytest

from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.training import result_files


def create(**values):
    return fine_tuning_options.TaskOptions(
        **{"output_dir": "run", "do_train": True} | values
    )


@pytest.mark.parametrize(
    "num_rows, batch_size, epochs, num_steps",
    [
        (3668, 32, 3.0, 343),  # MRPC, as in the release's README.
        (10, 4, 1.0, 2),  # The last, incomplete batch is dropped.
        (10, 4, 2.0, 5),  # Once for all epochs: batches cross their borders.
        (10, 4, 0.5, 1),  # Epochs may be fractions.
        (4, 4, 1.0, 1),
    ],
)
def test_the_number_of_steps_is_that_of_2018(num_rows, batch_size, epochs, num_steps):
    options = create(train_batch_size=batch_size, num_train_epochs=epochs)
    assert fine_tuning_workflow.num_train_steps(num_rows, options) == num_steps


def test_less_than_one_batch_is_refused_with_the_unit():
    sentence = r"7 questions × 0.5 epochs do not fill one batch of 4; lower --train_bat"
    with pytest.raises(ValueError, match=sentence):
        fine_tuning_workflow.num_train_steps(
            7, create(train_batch_size=4, num_train_epochs=0.5), unit="questions"
        )


class RecordedRun:
    """Notes what a workflow asks of a task's run."""

    def __init__(self):
        self.done = []
        self.lines = []
        data_sets = {"dev": result_files.DataSet(name="dev")}
        self.setup = types.SimpleNamespace(data_sets=data_sets)
        # Another process writes this folder, so there is no report.
        folder = types.SimpleNamespace(path="run", is_written=False)
        self.trainer = types.SimpleNamespace(folder=folder)

    def dry_run_report(self):
        self.done.append("dry run")
        return "an estimate"

    def train(self):
        self.done.append("train")
        return {"loss": 0.25, "global_step": 7}

    def evaluate(self):
        self.done.append("evaluate")
        return {"loss": 0.5, "eval_loss": 0.5, "eval_f1": 0.123456, "global_step": 7}

    def predict(self):
        self.done.append("predict")
        return ["Predictions are in x."]


@pytest.mark.parametrize(
    "flags, done, report",
    [
        (
            {"do_train": True, "do_eval": True, "do_predict": True},
            ["train", "evaluate", "predict"],
            [
                "Trained to step 7, loss 0.2500.",
                "eval_f1 = 0.1235",  # `loss` is `eval_loss` and appears once.
                "eval_loss = 0.5000",
                "global_step = 7",
                "Predictions are in x.",
                "The run is in run.",
            ],
        ),
        (
            {"do_train": False, "do_predict": True},
            ["predict"],
            ["Predictions are in x.", "The run is in run."],
        ),
        # An estimate is all that --dry_run does.
        ({"do_train": True, "dry_run": True}, ["dry run"], ["an estimate"]),
    ],
)
def test_a_run_does_what_the_flags_say_and_reports_it(flags, done, report):
    task_run = RecordedRun()
    lines = fine_tuning_workflow.run(task_run, create(**flags)).splitlines()
    assert (task_run.done, lines) == (done, report)
