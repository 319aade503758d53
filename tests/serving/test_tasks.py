"""Each row of the table of tasks names modules that exist and fit its task."""

import importlib
import inspect

import pytest

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.serving import tasks


@pytest.mark.parametrize("kind", tasks.TASKS)
def test_a_row_names_a_predictor_and_signatures_of_its_task(kind):
    row = tasks.TASKS[kind]
    predictor = importlib.import_module(row.predictor)
    run_dir, *others = inspect.signature(predictor.load).parameters.values()
    assert run_dir.name == "run_dir"
    assert all(other.default is not other.empty for other in others)
    package = row.predictor.rpartition(".")[0]
    task = importlib.import_module(f"{package}.task").Task
    assert issubclass(task, task_record.TaskRecord)
    assert kind == task.KIND  # The value in task.json by which the row is found.
    classes = [
        found
        for found in vars(predictor).values()
        if inspect.isclass(found)
        and issubclass(found, fine_tuning_predictor.Predictor)
        and found.__module__ == row.predictor
    ]
    assert classes
    assert all(
        hasattr(found, "predict") for found in classes if not found.__subclasses__()
    )
    signatures = importlib.import_module(row.signatures)
    parameters = list(inspect.signature(signatures.create).parameters)
    assert parameters == ["predictor", "limits"]
