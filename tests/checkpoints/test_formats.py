"""Which format a path is of, and what the release's own gives."""

import numpy as np
import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints.release import bundle


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


@pytest.mark.parametrize(
    "kind, task, num_labels, labels",
    [
        ("classification", None, 3, None),
        ("classification", {"labels": ["a", "b", "c"]}, 3, ("a", "b", "c")),
        ("classification", {"labels": None}, 3, None),  # A regression has no names.
        ("token_classification", {"labels": ["O", "B", "I"]}, 3, ("O", "B", "I")),
        ("multiple_choice", {}, None, None),
        ("question_answering", None, None, None),
    ],
)
def test_the_head_of_a_fine_tuned_checkpoint(
    fine_tuned, kind, task, num_labels, labels
):
    task = None if task is None else {"task": kind, **task}
    head = formats.open_source(fine_tuned(kind, task=task)).head
    assert (head.kind, head.num_labels, head.labels) == (kind, num_labels, labels)
    # The names of weights tell a span head, but not a classifier's from a tagger's.
    assert head.is_known == (task is not None or kind == "question_answering")


@pytest.mark.parametrize(
    "folder, task, expected",
    [
        ("uncased_L-2_H-128_A-2", None, True),
        ("multi_cased_L-12_H-768_A-12", None, False),
        ("chinese_L-12_H-768_A-12", None, True),
        ("my_run", None, None),
        ("my_run", '{"do_lower_case": false}', False),
        ("my_run", '{"do_lower_case": null}', None),  # Of examples of the 2018 code.
    ],
)
def test_the_casing_is_that_of_the_run_or_of_the_released_name(
    released_folder, tmp_path, folder, task, expected
):
    folder = released_folder.rename(tmp_path / folder)
    if task is not None:
        (folder / "task.json").write_text(task)
    assert formats.open_source(folder).do_lower_case is expected


def test_a_folder_with_two_checkpoints_is_ambiguous(released_folder):
    tensors = {"a": np.zeros(1, "float32")}
    bundle.save(released_folder / "other.ckpt", tensors)
    with pytest.raises(ValueError, match=r"2 checkpoints; pass the prefix of one, s.*"):
        formats.open_source(released_folder)


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
