import pytest

from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import features
from bert_tf.tokenization import in_graph


@pytest.fixture(scope="module")
def tokenizer(golden):
    return in_graph.InGraphTokenizer(str(golden / "vocab.txt"))


def example(start, *endings, label=None):
    return examples_module.ChoiceExample(
        guid="dev-1", start=start, endings=endings, label=label
    )


def test_every_ending_is_a_sequence_with_the_start_before_it(tokenizer):
    columns = features.convert_examples_to_features(
        [example("the bee", "and honey", "is", label=1)], 10, tokenizer
    ).columns
    pieces = [
        [tokenizer.vocabulary.tokens[i] for i in row] for row in columns["input_ids"][0]
    ]
    #             the start                       an ending
    assert pieces[1] == ["[CLS]", "the", "bee", "[SEP]", "is", "[SEP]"] + ["[PAD]"] * 4
    assert columns["segment_ids"][0, 1].tolist() == [0, 0, 0, 0, 1, 1] + [0] * 4
    assert columns["input_mask"][0, 1].tolist() == [1] * 6 + [0] * 4
    assert pieces[0][:5] == ["[CLS]", "the", "bee", "[SEP]", "and"]
    assert columns["label_ids"].tolist() == [1]


def test_examples_of_several_calls_keep_their_order(tokenizer, monkeypatch, reported):
    monkeypatch.setattr(features, "EXAMPLES_PER_CALL", 2)
    some = [example("a", "b" * i, "c", label=i % 2) for i in range(1, 6)]
    columns = features.convert_examples_to_features(some, 12, tokenizer).columns
    assert columns["input_mask"][:, 0].sum(axis=1).tolist() == [5, 6, 7, 8, 9]
    assert columns["label_ids"].tolist() == [1, 0, 1, 0, 1]
    assert [done for _, done, _ in reported] == [2, 4, 5]
