"""Losses that compare all examples of the global batch, on any number of replicas."""

import numpy as np
import pytest

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.data import batching
from bert_tf.modeling import rankers
from bert_tf.training import loop
from bert_tf.training import options as training_options
from tests.modeling import small_config

pytestmark = pytest.mark.slow

CONFIG = small_config.create(initializer_range=0.3)


def source():
    """Returns eight queries with two passages each; 0 and 1 answer several queries."""
    draw = np.random.default_rng(0)
    queries, passages = draw.integers(1, 30, (8, 6)), draw.integers(1, 30, (8, 2, 8))
    passage_ids = np.stack([[0, 1, 0, 2, 3, 4, 5, 0], [6, 7, 8, 9, 1, -1, 0, 3]], 1)
    positive_ids = np.full((8, 2), -2)
    positive_ids[:, 0] = passage_ids[:, 0]
    positive_ids[3, 1] = 1
    return batching.ArraySource(
        {
            "query_input_ids": queries,
            "query_input_mask": np.ones_like(queries),
            "input_ids": passages,
            "input_mask": np.ones_like(passages),
            "passage_ids": passage_ids,
            "positive_ids": positive_ids,
        }
    )


def trained(output_dir, **flags):
    """Returns the log and the weights of two steps with dropout."""
    defaults = {
        "output_dir": str(output_dir),
        "train_batch_size": 8,
        "learning_rate": 1e-3,
    }
    trainer = loop.Trainer(
        lambda: rankers.BertBiEncoder(CONFIG),
        training_options.TrainerOptions(**defaults | flags),
        num_train_steps=2,
    )
    trainer.train(source())
    lines = trainer.folder.read_metrics()
    weights = checkpoint_names.checkpoint_variables(trainer.model)
    return (
        [[line["ranking_loss"], line["global_grad_norm"]] for line in lines],
        {name: variable.numpy() for name, variable in weights.items()},
    )


@pytest.fixture(scope="module")
def on_one(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize(
    "flags",
    [
        {"device": "mirrored", "num_replicas": 2},
        {"device": "mirrored", "num_replicas": 4},
    ],
    ids=["2 replicas", "4 replicas"],
)
def test_loss_gradient_and_weights_do_not_depend_on_the_replicas(
    tmp_path, on_one, flags
):
    logged, weights = trained(tmp_path, **flags)
    expected_logged, expected_weights = on_one
    np.testing.assert_allclose(logged, expected_logged, rtol=1e-5)
    for name, values in weights.items():
        # Adam divides by the gradient's size, which enlarges rounding errors near 0.
        np.testing.assert_allclose(
            values, expected_weights[name], atol=2e-5, err_msg=name
        )


def test_other_parts_of_the_batch_matter(on_one):
    """Half of the batch gives a different loss, so the test above can fail."""
    arrays = {name: array[:4] for name, array in source()._arrays.items()}
    model = rankers.BertBiEncoder(CONFIG)
    half = float(model.total_loss(arrays, model(arrays)))
    assert abs(half - on_one[0][0][0]) > 0.05
