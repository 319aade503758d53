"""Options that training tools share: defaults, and combinations that are refused."""

import pytest

from bert_tf import options as options_module
from bert_tf.training import options as training_options


def fine_tuning(**values):
    return training_options.FineTuningOptions(output_dir="run", **values)


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


@pytest.mark.parametrize(
    "values, message",
    [
        ({"length_buckets": "32,16"}, "distinct lengths in ascending order"),
        ({"length_buckets": "32", "device": "tpu"}, "requires batches of one shape"),
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
