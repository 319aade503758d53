"""Which format a path is of, and what the release's own gives."""

import numpy as np
import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import release
from bert_tf.checkpoints.release import bundle


def test_every_format_has_a_reader_and_those_that_are_written_a_writer():
    for name in formats.FORMATS:
        module = formats.module_of(name)
        assert callable(module.is_at), name
        assert callable(module.open_source), name
    for name in kinds.WRITTEN_FORMATS:
        module = formats.module_of(name)
        assert callable(module.placement), name
        assert callable(module.write), name


def test_every_name_of_a_head_has_its_row():
    assert kinds.HEADS == checkpoint_heads.KINDS


def test_a_released_folder_is_opened_with_everything_in_it(released_folder):
    source = formats.open_source(released_folder)
    assert source.format == "bert"
    assert source.path == str(released_folder / "bert_model.ckpt")
    assert source.config.num_hidden_layers == 2
    assert len(source.vocabulary) == 288
    assert source.do_lower_case is True  # Its name says so.
    assert source.head == checkpoint_heads.Head(kind="pretraining")
    assert source.optimizer == ("global_step",)
    assert source.shapes["cls/seq_relationship/output_weights"] == (2, 16)


def test_the_model_in_the_package_is_opened_by_name(tmp_path, monkeypatch):
    source = formats.open_source("bert-tf-mini")
    assert source.config.num_hidden_layers == 4
    assert len(source.vocabulary) == source.config.vocab_size == 8000
    assert source.do_lower_case is True
    assert source.head == checkpoint_heads.Head(kind="masked_lm")
    names = ["cls/predictions/output_bias"]
    assert all(np.isfinite(array).all() for _, array in source.read_each(names))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert-tf-mini").mkdir()  # A folder of that name comes first.
    with pytest.raises(ValueError, match="unknown format"):
        formats.open_source("bert-tf-mini")


def test_slots_are_no_weights(golden):
    source = formats.open_source(golden / "model" / "trained.ckpt")
    assert len(source.shapes) == 46
    assert len(source.optimizer) == 2 * 46 + 1


@pytest.mark.parametrize(
    "kind, task, expected",
    [
        (
            "classification",
            None,
            checkpoint_heads.Head(kind="classification", num_labels=3),
        ),
        (
            "classification",
            {"task": "classification", "labels": ["a", "b", "c"]},
            checkpoint_heads.Head(
                kind="classification", num_labels=3, labels=("a", "b", "c")
            ),
        ),
        (
            "classification",  # A regression has no names.
            {"task": "classification", "labels": None},
            checkpoint_heads.Head(kind="classification", num_labels=3),
        ),
        (
            "token_classification",
            {"task": "token_classification", "labels": ["O", "B-PER", "I-PER"]},
            checkpoint_heads.Head(
                kind="token_classification",
                num_labels=3,
                labels=("O", "B-PER", "I-PER"),
            ),
        ),
        (
            "multiple_choice",
            {"task": "multiple_choice"},
            checkpoint_heads.Head(kind="multiple_choice"),
        ),
        ("question_answering", None, checkpoint_heads.Head(kind="question_answering")),
    ],
)
def test_the_head_of_a_fine_tuned_checkpoint(fine_tuned, kind, task, expected):
    found = formats.open_source(fine_tuned(kind, task=task)).head
    assert (found.kind, found.num_labels, found.labels) == (
        expected.kind,
        expected.num_labels,
        expected.labels,
    )
    # The names of weights tell a span head, but not a classifier's from a tagger's.
    assert found.is_known == (task is not None or kind == "question_answering")


@pytest.mark.parametrize(
    "folder, task, expected",
    [
        ("uncased_L-2_H-128_A-2", None, True),
        ("multi_cased_L-12_H-768_A-12", None, False),
        ("chinese_L-12_H-768_A-12", None, True),
        ("my_run", None, None),
        ("my_run", '{"do_lower_case": false}', False),
        ("my_run", '{"do_lower_case": null}', None),  # Of examples of the 2018 code.
        ("uncased_L-2_H-128_A-2", '{"do_lower_case": false}', False),
    ],
)
def test_the_casing_is_that_of_the_run_or_of_the_released_name(
    released_folder, tmp_path, folder, task, expected
):
    folder = released_folder.rename(tmp_path / folder)
    if task is not None:
        (folder / "task.json").write_text(task)
    assert formats.open_source(folder).do_lower_case is expected


def test_a_released_model_is_fetched_by_its_name(released_folder, monkeypatch):
    from bert_tf.checkpoints.catalogue import fetching

    asked = []

    def fetch(name, **_):
        asked.append(name)
        return str(released_folder)

    monkeypatch.setattr(fetching, "fetch", fetch)
    monkeypatch.chdir(released_folder.parent)
    source = formats.open_source("bert-base-cased")
    assert asked == ["bert-base-cased"]
    assert source.do_lower_case is False  # The catalogue knows it.
    # What is there comes first.
    released_folder.rename(released_folder.parent / "bert-base-cased")
    assert formats.open_source("bert-base-cased").path.startswith("bert-base-cased/")
    assert asked == ["bert-base-cased"]


# Refused.


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"No such checkpoint: .*nowhere, and no released model"
    ):
        formats.open_source(tmp_path / "nowhere")


def test_a_folder_of_no_known_format_is_refused_with_what_was_looked_for(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(
        ValueError,
        match=r"folder of an unknown format; expected one of: bert_model\.ckpt",
    ) as error:
        formats.open_source(tmp_path)
    for one in formats.FORMATS.values():
        assert one.shown_by in str(error.value)


def test_a_folder_with_two_checkpoints_is_ambiguous(released_folder):
    tensors = {"a": np.zeros(1, "float32")}
    bundle.save(released_folder / "other.ckpt", tensors)
    with pytest.raises(ValueError, match=r"2 checkpoints; pass the prefix of one, s.*"):
        formats.open_source(released_folder)


def test_an_object_based_checkpoint_is_not_one_of_2018(tmp_path):
    import tensorflow as tf

    prefix = tf.train.Checkpoint(a=tf.Variable(1.0)).write(str(tmp_path / "ckpt"))
    assert not release.is_at(prefix)
    with pytest.raises(ValueError, match="object-based checkpoint of TensorFlow 2"):
        release.open_source(prefix)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("task.json", "{", r"task\.json is not JSON"),
        ("task.json", "[]", r"task\.json contains a JSON list, expected an object"),
        ("bert_config.json", "{}", "has no vocab_size"),
        ("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[MASK]\n", r"\[SEP\] missing among 4"),
    ],
)
def test_a_broken_file_beside_the_checkpoint_is_named(
    released_folder, name, content, message
):
    (released_folder / name).write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        formats.open_source(released_folder)
    assert name in str(error.value)
