"""Examples from raw text in one dataset: which text, which draws, where it may run."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from bert_tf import pretraining_data
from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import graph_pools
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module

TEXT = "the cat sat\non the mat\n\nit rained\n\nthe dog ran\nit barked\nthe end\n"
WORDS = (
    *("the", "cat", "sat", "on", "mat"),
    *("it", "rained", "dog", "ran", "barked", "end"),
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text_dataset")
    (folder / "text.txt").write_text(TEXT * 40, encoding="utf-8")
    tokens = [*vocabulary_module.SPECIAL_TOKENS, *WORDS]
    vocabulary_module.Vocabulary(tokens).save(folder / "vocab.txt")
    return folder


def make_dataset(inputs, **changes):
    arguments = {"max_seq_length": 12, "max_predictions_per_seq": 2, "num_epochs": 1}
    return pretraining_data.text_dataset(
        str(inputs / "text.txt"), inputs / "vocab.txt", **arguments | changes
    )


def ids_of(dataset):
    return np.array([row["input_ids"].numpy() for row in dataset])


def test_examples_have_the_columns_of_the_releases_records(inputs):
    dataset = make_dataset(inputs)
    assert {name: tuple(spec.shape) for name, spec in dataset.element_spec.items()} == {
        "input_ids": (12,),
        "input_mask": (12,),
        "segment_ids": (12,),
        "masked_lm_positions": (2,),
        "masked_lm_ids": (2,),
        "masked_lm_weights": (2,),
        "next_sentence_labels": (1,),
    }
    row = next(iter(dataset))
    real = int(row["input_mask"].numpy().sum())
    assert row["input_ids"][0] == 2
    assert row["input_ids"][real - 1] == 3


# With deterministic operations, TensorFlow still runs a function in parallel if these
# are its only stateful operations. Any other makes the whole pipeline serial.
HARMLESS = {
    "Assert",
    "FixedLengthRecordDatasetV2",
    "If",
    "RangeDataset",
    "TensorSliceDataset",
    "_Retval",  # The result.
}


@pytest.mark.slow
def test_deterministic_operations_leave_text_parallel(inputs):
    graph = tf.compat.v1.GraphDef.FromString(
        tf.raw_ops.DatasetToGraphV2(
            input_dataset=make_dataset(inputs)._variant_tensor
        ).numpy()
    )
    # As text, it also shows the operations of its functions.
    definitions = map(op_def_registry.get, re.findall(r'\bop: "(\w+)"', str(graph)))
    stateful = {one.name for one in definitions if one is not None and one.is_stateful}
    assert "FixedLengthRecordDatasetV2" in stateful
    assert stateful <= HARMLESS


@pytest.mark.slow
def test_every_epoch_draws_new_masks_and_can_be_the_first(inputs):
    both = ids_of(make_dataset(inputs, num_epochs=2))
    first = ids_of(make_dataset(inputs))
    second = ids_of(make_dataset(inputs, first_epoch=1))
    np.testing.assert_array_equal(both, np.concatenate([first, second]))
    assert not np.array_equal(first[: len(second)], second[: len(first)])
    other = ids_of(make_dataset(inputs, random_seed=1))
    assert not np.array_equal(first[: len(other)], other[: len(first)])


@pytest.mark.slow
# In `make test`, `tests/pretraining/test_text_examples.py` resumes a run on text.
def test_it_goes_on_in_the_middle_with_the_same_examples(inputs):
    whole = ids_of(make_dataset(inputs, num_epochs=2))
    start = len(whole) * 2 // 3  # In the second epoch.
    rest = ids_of(make_dataset(inputs, num_epochs=2).skip(start))
    np.testing.assert_array_equal(whole[start:], rest)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"masking": "spans"}, "expected one of random, span, got 'spans'"),
        ({"masked_lm_prob": 2.0}, r"^masked_lm_prob: expected at most 1.0, got 2.0\.$"),
        ({"max_predictions_per_seq": 13}, r"expected at most max_seq_length \(12\)"),
        ({"first_epoch": -1}, "first_epoch: expected at least 0, got -1"),
        ({"num_epochs": 0}, "num_epochs: expected at least 1, got 0"),
        (
            {"shares": pretraining_data_options.MaskShares(mask=0.9)},
            "^mask_share=0.9, same_share",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(inputs, changes, message):
    with pytest.raises(ValueError, match=message):
        make_dataset(inputs, **changes)


def test_a_cased_vocabulary_needs_a_casing(inputs):
    cased = vocabulary_module.Vocabulary(
        [*vocabulary_module.SPECIAL_TOKENS, "The", *WORDS]
    )
    with pytest.raises(ValueError, match="cased pieces such as 'The'; pass"):
        pretraining_data.text_dataset(str(inputs / "text.txt"), cased)


# Blank lines of every kind, CR LF, no line end at the end of a file, and a document
# that goes on in the next file.
NASTY = [
    "one\r\ntwo\n\u2003\t\nthree\x0cthree\n\n\n",
    "four\n\u3000\nfive",
    "six\n\nseven",
]


def test_the_graph_reads_the_documents_that_python_reads(tmp_path):
    paths = []
    for number, text in enumerate(NASTY):
        paths.append(str(tmp_path / f"{number}.txt"))
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8", newline="")
    shards = data_corpus.shards(paths, 0.0001, target_mb=0.00001)
    table = graph_pools.SpanTable(shards)
    numbers = tf.range(len(shards), dtype=tf.int64)
    found = list(table.lines(numbers).as_numpy_iterator())
    assert [number for number, _ in found] == list(range(len(shards)))
    for (_, lines), shard in zip(found, shards, strict=True):
        documents, sentences = [], []
        for line in lines:
            sentence = line.decode().strip()
            if sentence:
                sentences.append(sentence)
            elif sentences:
                documents.append(sentences)
                sentences = []
        documents += [sentences] if sentences else []
        assert documents == list(data_corpus.read_shard(shard))


def test_text_that_is_not_utf_8_ends_with_the_name_of_the_file(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"one\n\ncaf\xe9\n")
    shards = data_corpus.shards([str(tmp_path / "latin.txt")], 1.0)
    table = graph_pools.SpanTable(shards)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)UTF-8.*latin\.txt"):
        list(table.lines(tf.constant([0], tf.int64)))


def test_pairs_need_two_documents(inputs, tmp_path):
    (tmp_path / "one.txt").write_text("the cat\nsat\n")
    arguments = (str(tmp_path / "one.txt"), inputs / "vocab.txt")
    with pytest.raises(ValueError, match="found one document"):
        pretraining_data.text_dataset(*arguments)


@pytest.mark.slow
def test_without_pairs_one_document_is_enough(inputs, tmp_path):
    (tmp_path / "one.txt").write_text("the cat\nsat\n")
    arguments = (str(tmp_path / "one.txt"), inputs / "vocab.txt")
    dataset = pretraining_data.text_dataset(*arguments, next_sentence=False)
    assert int(next(iter(dataset))["input_mask"].numpy().sum()) == 5


@pytest.mark.slow
def test_workers_of_tf_data_service_share_an_epoch(inputs, monkeypatch):
    """Each pool goes to one of two workers, so together they read the text once."""
    monkeypatch.setattr(data_corpus, "_MIN_SHARD_MB", 1e-4)
    monkeypatch.setattr(graph_pools, "SHARDS_PER_POOL", 1)
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    config = service.WorkerConfig(dispatcher_address=address)
    workers = [service.WorkerServer(config) for _ in range(2)]
    dataset = make_dataset(inputs)
    served = dataset.apply(
        service.distribute(
            processing_mode=service.ShardingPolicy.DYNAMIC, service=dispatcher.target
        )
    )
    found, expected = ids_of(served), ids_of(dataset)
    assert len(expected) > 30
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))
    del workers
