"""Options that training tools share: defaults, and combinations that are refused."""

import pathlib

import pytest

from bert_tf import command_line
from bert_tf import options as options_module
from bert_tf.pretraining import options as pretraining_options
from bert_tf.training import options as training_options

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"
PRETRAINING = {"input_file": "x", "bert_config_file": "x", "output_dir": "x"}


def fine_tuning(**values):
    return training_options.FineTuningOptions(output_dir="run", **values)


def test_every_fine_tuning_tool_has_the_options_of_fine_tuning(options_of_tool):
    found = {}
    for path in TOOLS.glob("[a-z]*.py"):
        record = options_of_tool(path.stem)
        if issubclass(record, training_options.TrainingOptions):
            found[path.stem] = issubclass(record, training_options.FineTuningOptions)
    assert "run_classifier" in found
    assert [name for name, is_tuning in found.items() if not is_tuning] == [
        "run_pretraining"
    ]


@pytest.mark.parametrize(
    "values, length_buckets",
    [
        ({}, training_options.LENGTH_BUCKETS),
        ({"device": "gpu"}, training_options.LENGTH_BUCKETS),
        ({"device": "tpu"}, ()),  # One shape.
        ({"length_buckets": ""}, ()),
        ({"length_buckets": "16,24"}, (16, 24)),
    ],
)
def test_length_buckets_are_on_but_for_a_tpu(values, length_buckets):
    assert fine_tuning(**values).length_buckets == length_buckets


def test_length_buckets_are_off_in_pretraining():
    record = pretraining_options.RunPretrainingOptions(**PRETRAINING)
    assert record.length_buckets == ()
    assert not hasattr(record, "group_by_length")


def test_an_empty_flag_turns_length_buckets_off(capsys):
    seen = []
    code = command_line.run(
        "tool",
        training_options.FineTuningOptions,
        lambda record: seen.append(record.length_buckets),
        ["--output_dir=x", "--length_buckets="],
    )
    assert (code, seen) == (0, [()])


@pytest.mark.parametrize(
    "values, message",
    [
        ({"length_buckets": "32,16"}, "distinct lengths in ascending order"),
        (
            {"length_buckets": "32", "device": "tpu"},
            "requires batches of one shape",
        ),
        (
            {"group_by_length": True, "shuffle_buffer_size": 1},
            "--group_by_length cannot be used with --shuffle_buffer_size=1",
        ),
        ({"gcp_project": "p"}, "--gcp_project requires --device=tpu"),
        (
            {"tpu_zone": "z", "device": "tpu", "tpu_name": "grpc://10.0.0.2:8470"},
            "--tpu_zone=z has no effect without the name of a TPU; got --tpu_name=grpc",
        ),
        ({"frozen_layers": "two"}, "--frozen_layers=two: expected a number of layers"),
        ({"frozen_layers": "-1"}, "--frozen_layers=-1: expected a number of layers"),
    ],
)
def test_what_does_not_go_together_is_refused(values, message):
    with pytest.raises(options_module.OptionError, match=message):
        fine_tuning(**values)
