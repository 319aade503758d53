"""Training reproduces the 24 (or 12) steps recorded from the 2018 code."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests import ring
from tests import runs

LONG = pytest.mark.long
# How a global batch may be divided without changing anything.
DIVISIONS = [
    pytest.param([], id="one_device"),
    pytest.param(["--device=mirrored", "--num_replicas=2"], id="two_replicas"),
    ring.slow(["--device=mirrored", "--num_replicas=4"], id="four_replicas"),
    ring.slow(["--gradient_accumulation_steps=2"], id="two_micro_batches"),
    ring.slow(["--jit_compile"], id="xla"),
]


@pytest.mark.parametrize("division", DIVISIONS)
def test_losses_gradient_norms_and_weights_equal_2018(
    golden, division, tmp_path, run_tool
):
    check_trajectory(golden / "model", division, tmp_path, run_tool)


@pytest.mark.parametrize(
    "division",
    # The small model has shown that a division changes nothing.
    [
        DIVISIONS[0],
        *(pytest.param(*d.values, id=d.id, marks=LONG) for d in DIVISIONS[1:]),
    ],
)
def test_a_larger_model_equals_2018_too(shared, division, tmp_path, run_tool):
    check_trajectory(shared / "golden" / "model_gelu", division, tmp_path, run_tool)


def check_trajectory(recorded_model, division, tmp_path, run_tool):
    output_dir = tmp_path / "run"
    config = json.loads((recorded_model / "bert_config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    recorded = json.loads((recorded_model / "trajectory.json").read_text())
    lengths = ("max_seq_length", "max_predictions_per_seq")
    schedule = ("num_train_steps", "num_warmup_steps", "learning_rate")
    run_tool(
        "run_pretraining",
        *division,
        input_file=recorded_model / "examples.tfrecord",
        output_dir=output_dir,
        bert_config_file=tmp_path / "bert_config.json",
        init_checkpoint=recorded_model / "bert_model.ckpt",
        do_train=True,
        train_batch_size=recorded["batch_size"],
        shuffle_buffer_size=1,
        **{name: recorded[name] for name in (*lengths, *schedule)},
    )

    columns = ["masked_lm_loss", "next_sentence_loss", "global_grad_norm"]
    metrics = runs.metrics(output_dir)
    assert [line["step"] for line in metrics] == list(
        range(1, recorded["num_train_steps"] + 1)
    )
    np.testing.assert_allclose(
        [[line[column] for column in columns] for line in metrics],
        recorded["before_each_step"],
        rtol=2e-5,
    )
    last = f"model.ckpt-{recorded['num_train_steps']}"
    ours = tf.train.load_checkpoint(str(output_dir / last))
    theirs = tf.train.load_checkpoint(str(recorded_model / "trained.ckpt"))
    assert ours.get_variable_to_shape_map() == theirs.get_variable_to_shape_map()
    for name in recorded["final_weights"]:
        expected = theirs.get_tensor(name)
        error = np.linalg.norm(ours.get_tensor(name) - expected)
        assert error <= 1e-5 * np.linalg.norm(expected), name
