"""What task.json says of a run's tokenizer."""

import json
import types

import pytest

from bert_tf.fine_tuning import task_record
from bert_tf.tasks.classification import examples


class Task(task_record.TaskRecord):
    KIND = "some_task"


COMMON = {"max_seq_length": 16, "do_lower_case": True}


@pytest.mark.parametrize(
    "settings, written",
    [
        ({}, {}),  # As in runs of before: nothing but the casing.
        ({"strip_accents": False}, {"strip_accents": False}),
        ({"never_split": ("<e>", "a")}, {"never_split": ["<e>", "a"]}),
    ],
)
def test_a_tokenizer_that_differs_from_the_release_s_is_recorded(
    settings, written, tmp_path
):
    record = Task(**COMMON, **settings)
    assert record.to_dict() == {"task": "some_task", **COMMON, **written}
    (tmp_path / "task.json").write_text(json.dumps(record.to_dict()))
    assert Task.read(tmp_path) == record
    assert record.tokenizer_arguments() == {
        "do_lower_case": True,
        "strip_accents": settings.get("strip_accents"),
        "never_split": settings.get("never_split", ()),
    }


@pytest.mark.parametrize("length", [-1, 2, 10**12])
def test_a_length_that_no_model_has_is_refused(length, tmp_path):
    values = {"task": "some_task", **COMMON, "max_seq_length": length}
    (tmp_path / "task.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match="expected 3 to 2147483647; restore the"):
        Task.read(tmp_path)


def test_an_empty_name_of_a_column_is_not_given_and_a_recorded_none_stays():
    options = types.SimpleNamespace(text_column="", text_b_column="b")
    columns = task_record.columns_of(examples.Columns, options, None)
    assert columns == examples.Columns(text_b_column="b")
    known = types.SimpleNamespace(text_column="review", label_column=None)
    columns = task_record.columns_of(examples.Columns, options, known)
    assert columns.names() == ["review", "b"]
