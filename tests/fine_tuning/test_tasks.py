"""Each row of the table of tasks names modules that exist and fit its task."""

import inspect
import pkgutil

import pytest

from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.fine_tuning import tasks
from bert_tf.pretraining import predictor as pretraining_predictor


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
        load = pkgutil.resolve_name(row.predictor)
        run_dir, *others = inspect.signature(load).parameters.values()
        assert run_dir.name == "run_dir"
        assert all(other.default is not other.empty for other in others)
        record = pretraining_predictor.Task
    assert issubclass(record, task_record.TaskRecord)
    assert kind == record.KIND  # The value in task.json by which the row is found.
    create = pkgutil.resolve_name(row.signatures)
    parameters = inspect.signature(create).parameters.values()
    required = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    assert required == ["predictor"]
