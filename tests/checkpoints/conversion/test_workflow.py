"""A conversion is whole and proven, or leaves nothing behind."""

import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import release
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import report as conversion_report
from bert_tf.checkpoints.conversion import verification
from bert_tf.checkpoints.conversion import workflow as conversion_workflow
from bert_tf.checkpoints.release import bundle
from tests import ring
from tests.checkpoints import sources
from tests.modeling import small_config


def options(source, target, **changes):
    values = {"target_format": "bert"} | changes
    return conversion_options.ConvertCheckpointOptions(
        source=str(source), target=str(target), **values
    )


def everything(path):
    return sources.arrays_of(formats.open_source(path))


def assert_same_weights(path, other):
    expected, found = everything(path), everything(other)
    assert sorted(expected) == sorted(found)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def names_in(folder):
    """Names of everything below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


RELEASED = [
    "bert_config.json",
    "bert_model.ckpt.data-00000-of-00001",
    "bert_model.ckpt.index",
    "task.json",
    "vocab.txt",
]


def test_a_folder_of_the_release_is_written_with_everything(released_folder, tmp_path):
    done = conversion_workflow.convert(
        options(released_folder, tmp_path / "new" / "model")
    )
    assert names_in(tmp_path / "new" / "model") == RELEASED
    assert_same_weights(released_folder, tmp_path / "new" / "model")
    assert set(done.differences.values()) == {0.0}
    outputs = {"sequence_output", "masked_lm_logits", "next_sentence_logits"}
    assert outputs < set(done.differences)
    new = formats.open_source(tmp_path / "new" / "model")
    assert new.config == done.source.config
    assert new.vocabulary.tokens == done.source.vocabulary.tokens
    assert new.do_lower_case is True
    assert names_in(tmp_path / "new") == ["model", *(f"model/{n}" for n in RELEASED)]


@pytest.mark.parametrize(
    "head, is_left",
    [
        ring.slow("encoder", lambda name: False),
        ring.slow("masked_lm", lambda name: "predictions" in name),
        ("pretraining", lambda name: True),
    ],
)
def test_the_target_gets_the_head_that_is_asked_for(
    released_folder, tmp_path, head, is_left
):
    done = conversion_workflow.convert(
        options(released_folder, tmp_path / "new", head=head)
    )
    before, after = everything(released_folder), everything(tmp_path / "new")
    heads = {name for name in before if name.startswith("cls/")}
    assert {name for name in after if "cls/" in name} == set(filter(is_left, heads))
    assert set(done.dropped) == heads - set(after)
    assert formats.open_source(tmp_path / "new").head.kind == head


def test_to_another_format_and_back_everything_is_the_same(fine_tuned, tmp_path):
    labels = ["no", "yes", "or"]
    task = {"task": "classification", "labels": labels, "label_kind": "multi_label"}
    source = fine_tuned("classification", task={**task, "do_lower_case": False})
    there = conversion_workflow.convert(
        options(source, tmp_path / "there", target_format="hugging_face")
    )
    assert "3 outputs, a label is any number of classes" in conversion_report.text(
        there
    )
    conversion_workflow.convert(options(tmp_path / "there", tmp_path / "back"))
    assert_same_weights(source, tmp_path / "back")
    before, after = map(formats.open_source, (source, tmp_path / "back"))
    assert (after.config, after.head) == (before.config, before.head)
    assert after.head.labels == tuple(labels)
    assert after.do_lower_case is False


@pytest.mark.slow
def test_of_a_run_with_a_bilstm_the_encoder_alone_is_converted(golden, tmp_path):
    tensors = bundle.read(
        golden / "model" / "bert_model.ckpt",
        bundle.read_names_and_shapes(golden / "model" / "bert_model.ckpt"),
    )
    tensors |= {
        "bilstm/layer_0_forward/kernel": np.ones((16, 64), "float32"),
        "cls/squad/output_weights": np.ones((2, 32), "float32"),
        "cls/squad/output_bias": np.ones(2, "float32"),
    }
    bundle.save(tmp_path / "run" / "model.ckpt-1", tensors)
    shutil.copy(golden / "model" / "bert_config.json", tmp_path / "run")
    prefix = tmp_path / "run" / "model.ckpt-1"
    for head in (None, "question_answering"):
        with pytest.raises(ValueError, match=r"a BiLSTM .* pass --head=encoder"):
            conversion_workflow.convert(options(prefix, tmp_path / "new", head=head))
    done = conversion_workflow.convert(
        options(prefix, tmp_path / "new", head="encoder")
    )
    assert "bilstm/layer_0_forward/kernel" in done.dropped
    found = everything(tmp_path / "new")
    assert all(name.startswith("bert/") for name in found)


def test_an_existing_target_is_never_replaced(released_folder, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.ckpt-1000.index").write_text("dear")
    shutil.copy(released_folder / "bert_model.ckpt.index", tmp_path / "old.index")
    for target in ("run", "old", "run/new.ckpt", released_folder.name):
        with pytest.raises(ValueError, match="already exists; choose another --target"):
            conversion_workflow.convert(options(released_folder, tmp_path / target))
    assert names_in(tmp_path / "run") == ["model.ckpt-1000.index"]


# Formats that lack something, or do not keep what they are given.


@pytest.fixture
def other_format(monkeypatch):
    """Makes a format out of the release's, with some functions changed."""

    def replace(**changes):
        functions = {
            name: getattr(release, name)
            for name in ("is_at", "open_source", "placement", "write")
        }
        module = types.SimpleNamespace(**functions | changes)
        module_of = formats.module_of
        monkeypatch.setattr(
            formats,
            "module_of",
            lambda name: module if name == "keras_hub" else module_of(name),
        )
        return {"target_format": "keras_hub"}

    return replace


def with_one_head(path):
    source = release.open_source(path)
    config = dataclasses.replace(source.config, num_attention_heads=1)
    return dataclasses.replace(source, config=config)


def with_other_bits(path):
    source = release.open_source(path)

    def read_each(wanted):
        for name, array in source.read_each(wanted):
            is_changed = "pooler" in name
            yield name, np.nextafter(array, np.float32(9)) if is_changed else array

    return dataclasses.replace(source, read_each=read_each)


def without_a_weight(path):
    source = release.open_source(path)
    shapes = dict(source.shapes)
    del shapes["bert/pooler/dense/bias"]
    return dataclasses.replace(source, shapes=shapes)


def fail_to_open(path):
    raise ValueError("it is broken.")


@pytest.mark.parametrize(
    "open_source, message",
    [
        (with_one_head, "sequence_output .* 1e-05"),
        (with_other_bits, "bert/pooler/dense/bias differs when it is read"),
        ring.slow(without_a_weight, "bert/pooler/dense/bias and 0 other"),
        (fail_to_open, r"cannot be read back \(it is broken"),
    ],
)
def test_a_result_that_is_another_model_is_a_failure_and_leaves_nothing(
    released_folder, tmp_path, other_format, open_source, message
):
    flags = other_format(open_source=open_source)
    with pytest.raises(ValueError, match=message):
        conversion_workflow.convert(options(released_folder, tmp_path / "new", **flags))
    assert os.listdir(tmp_path) == [released_folder.name]


@pytest.mark.parametrize(
    "target_format, target",
    [
        ("hugging_face", "new"),
        ("keras", "new.keras"),
        ring.slow("bert", "new"),
        ring.slow("keras_hub", "new"),
    ],
)
def test_weights_that_are_not_finite_are_refused_for_every_target(
    released_folder, tmp_path, target_format, target
):
    if target_format == "keras_hub":
        pytest.importorskip("keras_hub")
    prefix = released_folder / "bert_model.ckpt"
    tensors = bundle.read(prefix, bundle.read_names_and_shapes(prefix))
    tensors["bert/pooler/dense/bias"][0] = np.nan
    bundle.save(prefix, tensors)
    flags = {"target_format": target_format, "head": "encoder"}
    conversion = options(released_folder, tmp_path / target, **flags)
    with pytest.raises(ValueError, match=r"^bert/pooler/dense/bias in .* has 1 of 16 "):
        conversion_workflow.convert(conversion)
    assert os.listdir(tmp_path) == [released_folder.name]


# Interrupted, killed, full.


def test_an_interrupted_conversion_leaves_nothing(
    released_folder, tmp_path, other_format
):
    def write(source, folder):
        (pathlib.Path(folder) / "half").write_bytes(b"x")
        raise KeyboardInterrupt

    flags = other_format(write=write)
    with pytest.raises(KeyboardInterrupt):
        conversion_workflow.convert(options(released_folder, tmp_path / "new", **flags))
    assert os.listdir(tmp_path) == [released_folder.name]


SLOW_CONVERSION = """
import sys, time
from bert_tf.checkpoints import release
write = release.write
def slow_write(*arguments, **others):
    write(*arguments, **others)
    time.sleep(60)
release.write = slow_write
sys.path.insert(0, "tools")
import convert_checkpoint
sys.exit(convert_checkpoint.main(sys.argv[1:]))
"""


def test_what_a_killed_conversion_left_goes_with_the_next_one(
    released_folder, tmp_path, project_root
):
    target = tmp_path / "new"
    flags = [
        f"--source={released_folder}",
        f"--target={target}",
        "--target_format=bert",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_CONVERSION, *flags],
        cwd=project_root,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".new.*.partial/*.index")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not target.exists()
    assert len(os.listdir(tmp_path)) == 3  # Source, unfinished target, lock.
    conversion_workflow.convert(options(released_folder, target))
    assert sorted(os.listdir(tmp_path)) == ["new", released_folder.name]


@pytest.mark.parametrize(
    "target_format, name",
    [("bert", "new"), ("hugging_face", "new"), ("keras", "new.keras")],
)
def test_a_full_disk_is_named_and_nothing_stays(
    released_folder, small_disk, target_format, name
):
    disk = small_disk(48 * 1024)  # A checkpoint just does not fit.
    given = options(released_folder, disk / name, target_format=target_format)
    with pytest.raises(OSError, match=rf"{re.escape(name)}.* cannot be written"):
        conversion_workflow.convert(given)
    assert os.listdir(disk) == []


@pytest.mark.slow
def test_a_remote_target_is_written_whole(released_folder):
    target = "ram://models/new"
    conversion_workflow.convert(options(released_folder, target))
    assert sorted(tf.io.gfile.listdir(target)) == RELEASED
    with pytest.raises(ValueError, match="already exists"):
        conversion_workflow.convert(options(released_folder, target))


# The probe.


def test_the_probe_has_padding_and_two_segments():
    small = small_config.create(vocab_size=50, max_position_embeddings=12)
    batch = verification.probe_features(small)
    assert batch["input_ids"].shape == (3, 12)
    assert batch["input_ids"].max() < 50
    assert 0 < batch["input_mask"].sum() < 36
    assert set(np.unique(batch["segment_ids"])) == {0, 1}
    choices = verification.probe_features(small, "multiple_choice")
    assert choices["input_ids"].shape == (3, 2, 12)


@pytest.mark.parametrize(
    "expected, got, difference",
    [
        ([0.5, 0.25], [0.5, 0.5], 0.25),
        ([100.0, 0.0], [100.0, 1.0], 0.01),  # In parts of the largest.
        ([1.0], [1.0, 2.0], float("nan")),
        ([float("nan")], [float("nan")], float("nan")),
    ],
)
def test_differences_are_the_largest_ones(expected, got, difference):
    found = verification.difference(np.array(expected), np.array(got))
    np.testing.assert_equal(found, difference)
