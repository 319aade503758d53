"""A word embedding table that is padded only during training."""

import json

import numpy as np
import pytest

from bert_tf.checkpoints.release import bundle
from bert_tf.pretraining import objectives


@pytest.fixture
def pretrain(golden, tmp_path, run_tool, monkeypatch):
    """Runs the tool on a vocabulary whose size is not a round number."""
    recorded = golden / "model"
    values = json.loads((recorded / "bert_config.json").read_text())
    words = values["vocab_size"]
    monkeypatch.setattr(objectives, "VOCABULARY_MULTIPLE", words - 3)
    built = []
    create_model = objectives.create_model

    def watched(*arguments, **flags):
        built.append(create_model(*arguments, **flags))
        return built[-1]

    monkeypatch.setattr(objectives, "create_model", watched)

    def run(folder, **changes):
        given = {
            "input_file": recorded / "examples.tfrecord",
            "output_dir": folder,
            "bert_config_file": recorded / "bert_config.json",
            "do_train": True,
            "do_eval": True,
            "train_batch_size": 4,
            "max_seq_length": 64,
            "max_predictions_per_seq": 10,
            "num_train_steps": 6,
            "num_warmup_steps": 0,
            "learning_rate": 0.01,
            "save_checkpoints_steps": 3,
            "log_every_steps": 1,
            **changes,
        }
        done = run_tool("run_pretraining", *(f"--{k}={v}" for k, v in given.items()))
        assert done.exit_code == 0, done.stderr
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        losses = [json.loads(line)["loss"] for line in lines]
        return losses, bundle.read(
            folder / "model.ckpt-6",
            bundle.read_names_and_shapes(folder / "model.ckpt-6"),
        )

    run.built, run.num_words = built, words
    return run


@pytest.mark.parametrize(
    "optimizer", ["adamw", pytest.param("lamb", marks=pytest.mark.slow)]
)
def test_padding_changes_nothing_and_reaches_no_checkpoint(
    pretrain, tmp_path, optimizer
):
    plain, padded = tmp_path / "plain", tmp_path / "padded"
    losses, expected = pretrain(plain, optimizer=optimizer)
    found_losses, found = pretrain(padded, optimizer=optimizer, pad_vocabulary=True)
    table = pretrain.built[-1].bert.embeddings.word_embeddings
    assert table.shape[0] == 2 * (pretrain.num_words - 3)
    assert np.all(table.numpy()[pretrain.num_words :] == 0)
    assert found_losses == pytest.approx(losses, rel=1e-5)
    assert {name: array.shape for name, array in found.items()} == {
        name: array.shape for name, array in expected.items()
    }
    for name, array in expected.items():
        scale = max(np.max(np.abs(array)), 1e-3)
        assert np.max(np.abs(found[name] - array)) <= 1e-4 * scale, name

    # A padded run goes on from a checkpoint without padding, slots included.
    for path in plain.glob("*"):
        if path.is_file() and "-6" not in path.name:
            (tmp_path / "on").mkdir(exist_ok=True)
            (tmp_path / "on" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "on" / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"')
    again, _ = pretrain(tmp_path / "on", optimizer=optimizer, pad_vocabulary=True)
    assert again == pytest.approx(losses, rel=1e-5)
    # So does one that starts from its weights.
    start = padded / "model.ckpt-6"
    pretrain(tmp_path / "new", init_checkpoint=start, pad_vocabulary=True)
