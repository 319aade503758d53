"""Every task's model trains alike on any number of replicas.

The models and their columns are those of `tests/modeling/test_task_models.py`.
"""

import numpy as np
import pytest

from bert_tf.data import batching
from bert_tf.pretraining import options as pretraining_options
from bert_tf.training import loop
from tests import ring
from tests import runs
from tests.modeling import test_task_models

NUM_EXAMPLES = 8
NUM_STEPS = 4
# All models together take minutes. A bi-encoder compares all rows of the global batch.
MARKS = {"classifier": (), "bi_encoder": pytest.mark.slow}
# Of the gradient of a matrix, in bfloat16 with its 8 bits: 0.04 is the most measured.
BFLOAT16_ERROR = 0.1
# Gradients of biases are sums that may cancel to nothing; of the size of all gradients.
BFLOAT16_NOISE = 0.05


def columns_of(task):
    """Returns the task's columns for eight examples: its three, repeated."""
    features = test_task_models.OWN_FEATURES.get(task, test_task_models.FEATURES)
    order = np.arange(NUM_EXAMPLES) % 3
    return {name: column[order] for name, column in features.items()}


def train(task, output_dir, **values):
    """Trains; returns all tensors of the last checkpoint."""
    defaults = {
        "output_dir": str(output_dir),
        "learning_rate": 1e-2,
        "train_batch_size": 4,  # So that no replica has all passages.
        "save_checkpoints_steps": 2,
        "iterations_per_loop": 2,
    }
    flags = pretraining_options.RunPretrainingOptions(
        input_file="unused", **defaults | values
    )
    trainer = loop.Trainer(
        lambda: test_task_models.MODELS[task](dtype=flags.dtype),
        flags,
        num_train_steps=NUM_STEPS,
        num_warmup_steps=1,
    )
    reached = trainer.train(batching.ArraySource(columns_of(task)))
    assert reached["global_step"] == NUM_STEPS
    return runs.tensors(output_dir)


@pytest.fixture(
    params=[
        pytest.param(name, marks=MARKS.get(name, pytest.mark.long))
        for name in test_task_models.MODELS
    ]
)
def task(request):
    return request.param


def has_no_gradient(task, name):
    """Returns whether a gradient is 0 apart from rounding, which Adam enlarges.

    A key's bias adds the same to all scores of a softmax over positions, and the bias
    of a score the same to all of a softmax over endings, passages or positions.
    """
    scores_choices = task in ("multiple_choice", "cross_encoder")
    is_bias_of_score = scores_choices and name == "output_bias"
    return "key/bias" in name or is_bias_of_score or name == "cls/squad/output_bias"


@pytest.mark.parametrize("replicas", [2, ring.slow(4)])
def test_the_weights_do_not_depend_on_the_number_of_replicas(task, replicas, tmp_path):
    one = train(task, tmp_path / "1")
    several = train(
        task, tmp_path / str(replicas), device="mirrored", num_replicas=replicas
    )
    assert set(several) == set(one)
    for name, values in one.items():
        atol = 1e-3 if has_no_gradient(task, name) else 2e-5
        np.testing.assert_allclose(
            several[name], values, rtol=1e-3, atol=atol, err_msg=name
        )


@pytest.mark.slow
def test_a_run_in_bfloat16_under_xla_has_the_gradients_of_the_plain_one(task, tmp_path):
    # The weights hardly move, so Adam's first moments are sums of gradients.
    plain = train(task, tmp_path / "plain", learning_rate=1e-9)
    other = train(
        task,
        tmp_path / "other",
        learning_rate=1e-9,
        dtype="mixed_bfloat16",
        jit_compile=True,
    )
    assert {str(values.dtype) for values in other.values()} <= {"float32", "int64"}
    moments = [name for name in plain if name.endswith("adam_m")]
    size = np.sqrt(sum(np.sum(plain[name] ** 2) for name in moments))
    assert size > 0
    for name in moments:
        near = BFLOAT16_ERROR * np.linalg.norm(plain[name])
        if plain[name].ndim == 1:
            near += BFLOAT16_NOISE * size
        assert np.linalg.norm(other[name] - plain[name]) <= near, name
