"""Training rows: relevant passages, wrong passages, and what is drawn."""

import dataclasses

import numpy as np
import pytest

from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.tasks.retrieval import features
from bert_tf.tokenization import full


@pytest.fixture(scope="module")
def tokenizer(golden):
    return full.FullTokenizer(str(golden / "vocab.txt"), do_lower_case=True)


def example(query, passage, *negatives):
    return examples_module.RankingExample(
        guid=query, query=query, passage=passage, negatives=negatives
    )


ROWS = [
    example("the baker", "river", "rock", "bread"),
    example("the clock", "lamp"),
    example("the  baker", "the door", "river"),  # Right by the first row.
]
OTHERS = examples_module.Corpus(
    path="corpus", ids=("1", "2", "3"), passages=("lamp", "dark oven", "river")
)


@pytest.fixture
def data(tokenizer):
    return features.convert_examples_to_features(ROWS, tokenizer, corpus=OTHERS)


def source_of(data, tokenizer, *, model="bi_encoder", num_negatives, seed=1):
    about = features.Record(
        model=model,
        max_query_length=4,
        max_seq_length=6,
        do_lower_case=True,
        pooling="mean",
    )
    return features.RankingSource(
        data, about, tokenizer.vocabulary, num_negatives=num_negatives, seed=seed
    )


def test_equal_passages_share_a_number_and_rows_of_a_query_share_their_passages(data):
    # river, lamp, the door, rock, bread, dark oven
    assert data.passage_ids.tolist() == [0, 1, 2]
    assert len(data.passages) == 6
    assert data.positives == ({0, 2}, {1}, {0, 2})
    assert data.negatives == ((3, 4), (), ())


def test_negatives_are_the_given_ones_then_random_ones_and_never_right(data, tokenizer):
    source = source_of(data, tokenizer, num_negatives=4)
    rows = [source.candidates(step, np.arange(3)) for step in range(50)]
    for row in rows:
        assert row[:, 0].tolist() == [0, 1, 2]
        assert row[0, 1:3].tolist() == [3, 4]
        for index, right in enumerate(data.positives):
            assert not right & set(row[index, 1:].tolist())
    drawn = {int(number) for row in rows for number in row[1, 1:]}
    assert drawn == {0, 2, 3, 4, 5}  # Every wrong passage.


def test_some_are_drawn_if_more_negatives_are_given_than_needed(data, tokenizer):
    source = source_of(data, tokenizer, num_negatives=1)
    drawn = {int(source.candidates(step, [0])[0, 1]) for step in range(20)}
    assert drawn == {3, 4}


def test_draws_are_a_function_of_seed_step_and_example(data, tokenizer):
    def drawn(seed, step, indices):
        source = source_of(data, tokenizer, num_negatives=3, seed=seed)
        return source.candidates(step, np.array(indices)).tolist()

    first = drawn(1, 7, [0, 1, 2])
    assert first == drawn(1, 7, [0, 1, 2])
    assert first[1:] == drawn(1, 7, [1, 2])  # Independent of the rest of the batch.
    assert first != drawn(1, 8, [0, 1, 2])
    assert first != drawn(2, 7, [0, 1, 2])


def batch_of(source, **arguments):
    batches = source.training_batches(
        batch_size=2, num_steps=1, seed=0, shuffle_buffer_size=1, **arguments
    )
    return {name: values.numpy() for name, values in next(iter(batches)).items()}


def test_a_bi_encoders_rows_are_queries_and_passages(data, tokenizer):
    batch = batch_of(source_of(data, tokenizer, num_negatives=1))
    assert batch["query_input_ids"].shape == (2, 4)
    assert batch["input_ids"].shape == (2, 2, 6)
    assert batch["passage_ids"][:, 0].tolist() == [0, 1]
    assert batch["positive_ids"].tolist() == [[0, 2], [1, features.NO_PASSAGE]]
    pieces = tokenizer.convert_ids_to_tokens(batch["input_ids"][1, 0])
    assert pieces == ["[CLS]", "lamp", "[SEP]", "[PAD]", "[PAD]", "[PAD]"]


def test_queries_and_passages_are_cut_to_separate_buckets(data, tokenizer):
    source = source_of(data, tokenizer, num_negatives=0)
    batch = batch_of(source, length_buckets=(3, 4, 5))
    assert batch["input_ids"].shape == (2, 1, 3)
    assert batch["query_input_mask"].shape == (2, 4)


def test_a_cross_encoders_rows_are_pairs_that_keep_the_query(data, tokenizer):
    source = source_of(data, tokenizer, model="cross_encoder", num_negatives=1)
    batch = batch_of(source)
    assert set(batch) >= {"input_ids", "input_mask", "segment_ids"}
    assert "passage_ids" not in batch
    pieces = tokenizer.convert_ids_to_tokens(batch["input_ids"][1, 0])
    assert pieces == ["[CLS]", "the", "clock", "[SEP]", "lamp", "[SEP]"]
    assert batch["segment_ids"][1, 0].tolist() == [0, 0, 0, 0, 1, 1]
    # Keeps two pieces of the query, and as much of the passage as fits. A query without
    # a limit of its own leaves the passage its share.
    task, sep_id = source._task, tokenizer.vocabulary.sep_id
    for record in (task, dataclasses.replace(task, max_query_length=99)):
        ids = features.pack_pairs(tokenizer.vocabulary, record, [[7] * 9], [[8] * 9])
        assert ids["input_ids"][0, 1:5].tolist() == [7, 7, sep_id, 8]


def test_row_lengths_are_the_lengths_of_the_relevant_passages(data, tokenizer):
    source = source_of(data, tokenizer, num_negatives=0)
    assert source.row_lengths().tolist() == [3, 3, 4]


def test_a_query_that_all_passages_answer_is_refused(tokenizer):
    rows = [example("the baker", "river"), example("the baker", "lamp")]
    data = features.convert_examples_to_features(rows, tokenizer)
    with pytest.raises(ValueError, match="All 2 passages answer one query"):
        source_of(data, tokenizer, num_negatives=1)
    source_of(data, tokenizer, num_negatives=0)
