"""Masks drawn in training: different each time, a function of (seed, step, row)."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import tfrecord
from bert_tf.pretraining import dynamic_masking
from bert_tf.pretraining import options as pretraining_options
from bert_tf.tokenization import vocabulary as vocabulary_module
from tests import runs

LENGTHS = {"max_seq_length": 64, "max_predictions_per_seq": 10}
SEED = 5


@pytest.fixture(scope="module")
def unmasked(create_data):
    """Path of records without masks of the small recorded text."""
    return create_data(max_seq_length=64, dupe_factor=3, dynamic_masking=True)


@pytest.fixture(scope="module")
def vocabulary(golden):
    return vocabulary_module.Vocabulary.load(golden / "vocab.txt")


def source_of(path, vocabulary, **flags):
    given = pretraining_options.RunPretrainingOptions(
        input_file=str(path),
        output_dir="none",
        random_seed=SEED,
        **{**LENGTHS, **flags},
    )
    return dynamic_masking.create_source(
        tfrecord.RecordFiles([path]), vocabulary, given
    )


def training(source, **arguments):
    arguments = {"batch_size": 4, "num_steps": 40, "seed": SEED, **arguments}
    return list(source.training_batches(**arguments).as_numpy_iterator())


def unmasked_ids(batch):
    ids = batch["input_ids"].copy()
    rows, ranks = np.nonzero(batch["masked_lm_weights"])
    places = batch["masked_lm_positions"][rows, ranks]
    ids[rows, places] = batch["masked_lm_ids"][rows, ranks]
    return ids


def test_the_columns_are_those_of_masked_records(unmasked, vocabulary):
    [batch] = training(source_of(unmasked, vocabulary), num_steps=1)
    shapes = {name: values.shape for name, values in batch.items()}
    assert shapes == {
        "input_ids": (4, 64),
        "input_mask": (4, 64),
        "segment_ids": (4, 64),
        "masked_lm_positions": (4, 10),
        "masked_lm_ids": (4, 10),
        "masked_lm_weights": (4, 10),
        "next_sentence_labels": (4, 1),
        "example_index": (4,),
        "step": (4,),
    }
    length = batch["input_mask"].sum(axis=1)
    expected = np.clip(np.rint(length * 0.15), 1, 10)
    np.testing.assert_array_equal(batch["masked_lm_weights"].sum(axis=1), expected)


def test_masks_do_not_depend_on_where_reading_began_or_how_many_read(
    unmasked, vocabulary, monkeypatch
):
    source = source_of(unmasked, vocabulary, do_whole_word_mask=True)
    whole = training(source)
    runs.assert_same_batches(training(source, start_step=23), whole[23:])
    monkeypatch.setattr(batching, "_PARALLEL_READS", 1)
    runs.assert_same_batches(training(source), whole)


def test_every_epoch_has_other_masks_of_the_same_text(unmasked, vocabulary):
    source = source_of(unmasked, vocabulary)
    size = source.num_examples
    first, second = training(
        source, batch_size=size, num_steps=2, shuffle_buffer_size=1
    )
    np.testing.assert_array_equal(unmasked_ids(first), unmasked_ids(second))
    positions = "masked_lm_positions"
    same = (first[positions] == second[positions]).all(axis=1)
    assert same.mean() < 0.1


def test_evaluation_always_has_the_same_masks(unmasked, vocabulary):
    source = source_of(unmasked, vocabulary)
    columns = []
    for size in (8, 8, 5):
        batches = list(source.evaluation_batches(batch_size=size).as_numpy_iterator())
        ids = np.concatenate([batch["input_ids"] for batch in batches])
        weights = np.concatenate([batch["masked_lm_weights"] for batch in batches])
        assert weights[source.num_examples :].sum() == 0
        columns.append(ids[: source.num_examples])
    np.testing.assert_array_equal(columns[0], columns[1])
    np.testing.assert_array_equal(columns[0], columns[2])


@pytest.mark.parametrize(
    "flags",
    [
        {"do_whole_word_mask": True},
        {"masking": "span"},
        {"masked_lm_prob": 0.05},
        {"mask_share": 1.0, "same_share": 0.0, "random_share": 0.0},
    ],
)
def test_masks_of_training_follow_their_flags(unmasked, vocabulary, flags):
    usual = training(source_of(unmasked, vocabulary), num_steps=1)[0]
    other = training(source_of(unmasked, vocabulary, **flags), num_steps=1)[0]
    np.testing.assert_array_equal(unmasked_ids(usual), unmasked_ids(other))
    assert (usual["input_ids"] != other["input_ids"]).any()


@pytest.fixture
def pretrain(pretrain, unmasked, dropout_config):
    """Runs the tool on records without masks."""
    flags = {"num_train_steps": 6, "num_warmup_steps": 2}
    flags |= {"input_file": unmasked, "bert_config_file": dropout_config}
    return functools.partial(pretrain, do_eval=True, **flags)


@pytest.mark.slow
def test_a_run_that_goes_on_from_a_checkpoint_meets_the_same_masks(pretrain, tmp_path):
    flags = {"save_checkpoints_steps": 3, "masking": "span"}
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    pretrain(output_dir=whole, **flags)
    runs.copy_stopped(whole, resumed, step=3, last_step=6)
    pretrain(output_dir=resumed, **flags)
    runs.assert_same_tensors(resumed, whole)
    results = [(folder / "eval_results.txt").read_text() for folder in (whole, resumed)]
    assert results[0] == results[1]


def test_masks_are_asked_for_only_where_there_are_none(pretrain, golden):
    done = pretrain(
        input_file=golden / "model" / "examples.tfrecord",
        masked_lm_prob=0.3,
        exit_code=1,
    )
    assert "--masked_lm_prob needs unmasked examples" in done.stderr


@pytest.mark.slow
def test_masks_that_have_no_room_are_refused(pretrain):
    done = pretrain(max_predictions_per_seq=9, exit_code=1)
    [line] = [line for line in done.stderr.splitlines() if "run_pretraining:" in line]
    assert "--max_predictions_per_seq=9 allows masking only 14.1% of the 64" in line
    assert "--masked_lm_prob is 0.15; pass --max_predictions_per_seq=10" in line
    # There is room if fewer are needed, and left to right needs none.
    pretrain(max_predictions_per_seq=9, masked_lm_prob=0.14)
    flags = {"max_predictions_per_seq": 9, "objective": "left_to_right"}
    done = pretrain(**flags, exit_code=1)  # For another reason: its records are pairs.
    assert "--max_predictions_per_seq" not in done.stderr


def rewritten(path, target, change):
    """Writes records again, without a side file, after `change` of their columns."""
    with tf.io.TFRecordWriter(str(target)) as writer:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            example = tf.train.Example.FromString(record)
            change(example.features.feature)
            writer.write(example.SerializeToString())
    return target


def test_further_columns_of_other_programs_are_left_out_as_in_2018(
    golden, tmp_path, vocabulary, caplog
):
    def add(columns):
        columns["doc_id"].int64_list.value.append(7)

    path = rewritten(golden / "default.tfrecord", tmp_path / "a.tfrecord", add)
    expected = source_of(golden / "default.tfrecord", vocabulary)
    source = source_of(path, vocabulary)
    assert set(source.columns) == set(expected.columns)
    assert "columns that training does not read: doc_id" in caplog.text


def test_a_mask_under_another_name_is_not_left_out(golden, tmp_path, vocabulary):
    def rename(columns):
        columns["attention_mask"].CopyFrom(columns["input_mask"])
        del columns["input_mask"]

    path = rewritten(golden / "default.tfrecord", tmp_path / "a.tfrecord", rename)
    with pytest.raises(ValueError, match=r"column input_mask, only .*attention_mask"):
        source_of(path, vocabulary)
