"""Each row of the table of tasks names modules that exist and fit its task."""

import importlib
import inspect

import pytest

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.fine_tuning import tasks


@pytest.mark.parametrize("kind", tasks.TASKS)
def test_a_row_names_a_task_and_its_signatures(kind):
    row = tasks.TASKS[kind]
    if row.task is not None:
        declaration = tasks.declaration(kind)
        record = declaration.RECORD
        assert declaration.PREDICTOR.RECORD is record
        assert issubclass(declaration.PREDICTOR, fine_tuning_predictor.Predictor)
        assert kind == tasks.options_class(kind).TASK
    else:
        module, _, name = row.predictor.partition(":")
        load = getattr(importlib.import_module(module), name)
        run_dir, *others = inspect.signature(load).parameters.values()
        assert run_dir.name == "run_dir"
        assert all(other.default is not other.empty for other in others)
        record = importlib.import_module(module).Task
    assert issubclass(record, task_record.TaskRecord)
    assert kind == record.KIND  # The value in task.json by which the row is found.
    module, _, name = row.signatures.partition(":")
    create = getattr(importlib.import_module(module), name)
    parameters = list(inspect.signature(create).parameters)
    assert parameters == ["predictor"]
