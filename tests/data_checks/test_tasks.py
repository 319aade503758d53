"""The table of checked tasks agrees with the tools whose flags it passes on."""

import dataclasses

import pytest

from bert_tf.data_checks import options as data_checks_options
from bert_tf.data_checks import tasks


@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_row_names_options_that_its_tool_and_check_data_have(name):
    task = tasks.TASKS[name]()
    of_tool = {field.name for field in dataclasses.fields(task.options)}
    of_check = {
        field.name for field in dataclasses.fields(data_checks_options.CheckDataOptions)
    }
    assert set(task.unread) <= of_tool
    assert set(task.implied) <= of_tool
    for flags in task.implied.values():
        assert set(flags) & of_tool  # Otherwise nothing would switch the flag on.
        assert set(flags) <= of_check


@pytest.mark.parametrize(
    "name, given, values",
    [
        # AX has test data only, so there is nothing to train on.
        (
            "classification",
            {"task_name": "AX"},
            {"do_train": False, "do_predict": True},
        ),
        ("classification", {"task_name": "MRPC"}, {}),
        ("classification", {"task_name": None}, {}),
        ("retrieval", {"model": "cross_encoder"}, {"retrieve_with": "unread"}),
        ("retrieval", {"model": "bi_encoder"}, {}),
        ("pretraining", {}, {}),
    ],
)
def test_some_options_follow_from_others(name, given, values):
    assert tasks.TASKS[name]().follows(given) == values
