"""A folder of an interrupted 2018 run can be resumed as is."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.data import tfrecord
from tests import runs

STEP, LAST_STEP, BATCH_SIZE, RATE = 12, 16, 4, 1e-3
WITHOUT_DECAY = ("LayerNorm", "layer_norm", "bias")


@pytest.fixture
def interrupted(golden, tmp_path):
    """An output_dir of the 2018 run_pretraining.py, moved here from another machine."""
    run = tmp_path / "run"
    run.mkdir()
    for path in (golden / "model").glob("trained.ckpt.*"):
        shutil.copy(path, run / path.name.replace("trained.ckpt", f"model.ckpt-{STEP}"))
    (run / f"model.ckpt-{STEP}.meta").write_bytes(b"a graph")
    (run / "graph.pbtxt").write_text("node {}")
    (run / "events.out.tfevents.1541000000.host").write_bytes(b"")
    (run / "eval").mkdir()
    (run / "checkpoint").write_text(
        f'model_checkpoint_path: "/home/me/run/model.ckpt-{STEP}"\n'
        'all_model_checkpoint_paths: "/home/me/run/model.ckpt-8"\n'
        f'all_model_checkpoint_paths: "/home/me/run/model.ckpt-{STEP}"\n'
    )
    return run


def loss_of(model, batch):
    """Both losses, as run_pretraining.py of 2018 adds them up."""
    outputs = model(batch, training=False)
    log_probabilities = tf.nn.log_softmax(outputs["masked_lm_logits"])
    ids = batch["masked_lm_ids"][..., None]
    losses = -tf.gather(log_probabilities, ids, axis=-1, batch_dims=2)[..., 0]
    weights = batch["masked_lm_weights"]
    masked_lm = tf.reduce_sum(losses * weights) / (tf.reduce_sum(weights) + 1e-5)
    labels = tf.reshape(batch["next_sentence_labels"], [-1])
    return masked_lm + tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels, outputs["next_sentence_logits"]
        )
    )


def continued(run, config_file, records):
    """Returns losses and final weights: the 2018 optimizer in NumPy, from its slots."""
    from bert_tf.checkpoints import names as checkpoint_names
    from bert_tf.modeling import config as config_module
    from bert_tf.modeling import pretrainer

    model = pretrainer.BertPretrainer(
        config_module.BertConfig.from_json_file(config_file)
    )
    prefix = str(run / f"model.ckpt-{STEP}")
    loading.load_checkpoint(model, prefix)
    variables = checkpoint_names.checkpoint_variables(model)
    saved = tf.train.load_checkpoint(prefix)
    slots = {
        name: [saved.get_tensor(f"{name}/adam_{slot}") for slot in "mv"]
        for name in variables
    }
    assert saved.get_tensor("global_step") == STEP
    losses = []
    for step in range(STEP, LAST_STEP):
        rows = np.arange(step * BATCH_SIZE, (step + 1) * BATCH_SIZE)
        columns = records.decoded(int(rows[0]) % records.num_records)
        stacked = [records.decoded(int(row) % records.num_records) for row in rows]
        batch = {name: np.stack([row[name] for row in stacked]) for name in columns}
        with tf.GradientTape() as tape:
            loss = loss_of(model, batch)
        losses.append(float(loss))
        gradients = tape.gradient(loss, [v.value for v in variables.values()])
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        rate = RATE * (1 - (step + 1) / LAST_STEP)  # Steps count from 1, as recorded.
        for (name, variable), gradient in zip(
            variables.items(), gradients, strict=True
        ):
            m, v = slots[name]
            slots[name] = m, v = (
                0.9 * m + 0.1 * gradient.numpy(),
                0.999 * v + 0.001 * gradient.numpy() ** 2,
            )
            update = m / (np.sqrt(v) + 1e-6)
            if not any(part in name for part in WITHOUT_DECAY):
                update += 0.01 * variable.numpy()
            variable.assign_sub(rate * update)
    return losses, {name: variable.numpy() for name, variable in variables.items()}


def test_it_goes_on_with_slots_step_rate_and_order(
    interrupted, golden, tmp_path, pretrain
):
    model = golden / "model"
    settings = json.loads((model / "bert_config.json").read_text())
    settings |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config_file = tmp_path / "bert_config.json"
    config_file.write_text(json.dumps(settings))
    records = tfrecord.RecordFiles([str(model / "examples.tfrecord")])
    losses, weights = continued(interrupted, config_file, records)

    done = pretrain(
        output_dir=interrupted,
        bert_config_file=config_file,
        train_batch_size=BATCH_SIZE,
        num_train_steps=LAST_STEP,
        num_warmup_steps=0,
        learning_rate=RATE,
        shuffle_buffer_size=1,
    )
    assert done.exit_code == 0, done.stderr
    logged = runs.metrics(interrupted)
    assert [line["step"] for line in logged] == list(range(STEP + 1, LAST_STEP + 1))
    np.testing.assert_allclose([line["loss"] for line in logged], losses, rtol=1e-5)
    after = tf.train.load_checkpoint(str(interrupted / f"model.ckpt-{LAST_STEP}"))
    for name, expected in weights.items():
        error = np.linalg.norm(after.get_tensor(name) - expected)
        assert error <= 1e-5 * np.linalg.norm(expected), name
    # What the 2018 code left is still there, and TensorFlow finds the new checkpoint.
    left = {path.name for path in interrupted.iterdir()}
    assert {
        "graph.pbtxt",
        "events.out.tfevents.1541000000.host",
        f"model.ckpt-{STEP}.index",
        f"model.ckpt-{STEP}.meta",
    } <= left
    latest = tf.train.latest_checkpoint(str(interrupted))
    assert latest == str(interrupted / f"model.ckpt-{LAST_STEP}")
