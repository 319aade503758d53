"""Options that training tools share: defaults, and combinations that are refused."""

import pytest

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.training import options as training_options


def fine_tuning(**values):
    return fine_tuning_options.TaskOptions(output_dir="run", do_train=True, **values)


@pytest.mark.parametrize(
    "values, length_buckets",
    [
        ({}, training_options.LENGTH_BUCKETS),
        ({"device": "gpu"}, training_options.LENGTH_BUCKETS),
        ({"device": "tpu"}, ()),  # One shape.
    ],
)
def test_length_buckets_are_on_but_for_a_tpu(values, length_buckets):
    assert fine_tuning(**values).length_buckets == length_buckets


def test_what_does_not_go_together_is_refused():
    with pytest.raises(options_module.OptionError, match="--tpu_name requires --devi"):
        fine_tuning(tpu_name="local")


def test_a_seed_that_numpy_does_not_take_is_refused():
    assert fine_tuning(random_seed=2**32 - 1)
    with pytest.raises(options_module.OptionError, match="at most 4294967295"):
        fine_tuning(random_seed=2**32)


@pytest.mark.parametrize("tpu_name", ["my-tpu", "grpc://10.0.0.2:8470"])
def test_a_tpu_of_another_machine_is_refused(tpu_name):
    with pytest.raises(options_module.OptionError, match="--tpu_name=local or without"):
        fine_tuning(device="tpu", tpu_name=tpu_name)
