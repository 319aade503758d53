"""A run that has to stop says why in one line; its checkpoints stay intact."""

import shutil
import subprocess

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import record_checks
from bert_tf.training import non_finite
from bert_tf.training import steps

CHECKPOINT_BYTES = 131_000  # Of the recorded model, with Adam's slots.


@pytest.fixture
def pretrain(golden, tmp_path, run_tool):
    """Runs the tool on the recorded examples, in order, four per step."""

    def run(**flags):
        model = golden / "model"
        given = {
            "input_file": model / "examples.tfrecord",
            "output_dir": tmp_path / "run",
            "bert_config_file": model / "bert_config.json",
            "train_batch_size": 4,
            "num_train_steps": 10,
            "num_warmup_steps": 2,
            "max_seq_length": 64,
            "max_predictions_per_seq": 10,
            "shuffle_buffer_size": 1,
            "do_train": True,
            "log_every_steps": 1,
            **flags,
        }
        return run_tool("run_pretraining", *(f"--{k}={v}" for k, v in given.items()))

    return run


def plant(records, path, number):
    """Copies TFRecords and sets the first mask weight of one of them to NaN."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for index, record in enumerate(tf.data.TFRecordDataset(str(records))):
            example = tf.train.Example.FromString(record.numpy())
            if index == number:
                weights = example.features.feature["masked_lm_weights"]
                weights.float_list.value[0] = float("nan")
            writer.write(example.SerializeToString())


def test_a_loss_that_is_no_number_stops_the_run_and_its_batch_is_kept(
    pretrain, golden, tmp_path, monkeypatch
):
    plant(golden / "model" / "examples.tfrecord", tmp_path / "bad.tfrecord", 26)
    # The check before training reads a sample. Here, it misses the damaged record.
    monkeypatch.setattr(record_checks, "_RECORDS_SAMPLED", 1)
    run = tmp_path / "run"
    done = pretrain(input_file=tmp_path / "bad.tfrecord", save_checkpoints_steps=4)
    assert done.exit_code == 1
    # Example 26 is in the seventh batch of four.
    path = run / "non_finite_batch_7.npz"
    [line] = [line for line in done.stderr.splitlines() if "run_pretraining:" in line]
    assert "stopped at step 7 because its loss is nan" in line
    assert str(path) in line
    batch = np.load(path)
    assert np.argwhere(np.isnan(batch["masked_lm_weights"])).tolist() == [[2, 0]]
    assert batch["input_ids"].shape == (4, 64)
    assert tf.train.latest_checkpoint(str(run)) == str(run / "model.ckpt-4")
    weights = tf.train.load_checkpoint(str(run / "model.ckpt-4"))
    for name in weights.get_variable_to_shape_map():
        assert np.isfinite(weights.get_tensor(name)).all(), name
    assert "NaN" not in (run / "metrics.jsonl").read_text()


NAN, INF = float("nan"), float("inf")


def test_a_gradient_that_no_scale_makes_finite_stops_a_float16_run(
    pretrain, tmp_path, monkeypatch
):
    gradient_function = steps.build_gradient_function

    def without_numbers(*arguments, **settings):
        compute = gradient_function(*arguments, **settings)

        def gradients_of(batch, weights):
            terms, gradients = compute(batch, weights)
            return terms, {place: NAN * value for place, value in gradients.items()}

        return gradients_of

    monkeypatch.setattr(steps, "build_gradient_function", without_numbers)
    done = pretrain(dtype="mixed_float16", num_train_steps=20)
    assert done.exit_code == 1
    # The scale falls from 2 ** 15 to 1 in fifteen steps, which are all skipped.
    assert np.load(tmp_path / "run" / "non_finite_batch_16.npz")["input_ids"].size
    [line] = [line for line in done.stderr.splitlines() if "run_pretraining:" in line]
    assert "its gradient norm nan" in line
    assert "--dtype=mixed_bfloat16" in line


@pytest.mark.parametrize(
    "losses, norms, scales, expected",
    [
        ([1, 2, 3], [1, 1, 1], None, 3),
        ([1, NAN, 3], [1, 1, 1], None, 1),
        ([1, 2, INF], [1, 1, 1], None, 2),
        # From here on the weights are NaN.
        ([1, 2, 3], [INF, 1, 1], None, 0),
        # Loss scaling handles it, as long as the scale can be lowered.
        ([1, 2, 3], [INF, 1, 1], [4, 2, 2], 3),
        ([1, 2, 3], [NAN, NAN, NAN], [4, 2, 1], 2),
        ([1, 2, 3], [1, 1, 1], [1, 1, 1], 3),
        ([1, NAN, 3], [INF, 1, 1], [4, 2, 2], 1),
    ],
)
def test_steps_before_the_first_without_a_number_are_counted(
    losses, norms, scales, expected
):
    history = {"loss": np.float32(losses), "global_grad_norm": np.float32(norms)}
    if scales:
        history["loss_scale"] = np.float32(scales)
    assert non_finite.count_finite_steps(history) == expected


@pytest.fixture
def small_disk(tmp_path):
    """Folder on a disk with room for two checkpoints, but not for three."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={int(2.6 * CHECKPOINT_BYTES)}"
    command = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder]
    if shutil.which("mount") is None or subprocess.run(command).returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_ends_the_run_with_one_line_and_the_last_checkpoint_whole(
    pretrain, small_disk, tmp_path
):
    run = small_disk / "run"
    done = pretrain(output_dir=run, save_checkpoints_steps=2)
    assert done.exit_code == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        f"run_pretraining: The checkpoint {run / 'model.ckpt-6'} cannot be written: No "
        "space left on device. Earlier checkpoints are unchanged."
    )
    prefix = tf.train.latest_checkpoint(str(run))
    assert prefix == str(run / "model.ckpt-4")
    # Once there is room, the run resumes and ends like an uninterrupted one.
    shutil.copytree(run, tmp_path / "moved")
    (tmp_path / "moved" / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-4"\n'
    )
    assert pretrain(output_dir=tmp_path / "moved").exit_code == 0
    assert pretrain(output_dir=tmp_path / "uninterrupted").exit_code == 0
    continued, expected = (
        tf.train.load_checkpoint(str(tmp_path / name / "model.ckpt-10"))
        for name in ("moved", "uninterrupted")
    )
    for name in expected.get_variable_to_shape_map():
        np.testing.assert_array_equal(
            continued.get_tensor(name), expected.get_tensor(name), err_msg=name
        )
