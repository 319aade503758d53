import numpy as np
import pytest

from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##c", "D", "d"]
CLS, SEP, UNK = 2, 3, 1
A, B, C, INNER_C = 5, 6, 7, 8
LABELS = ("O", "B-X", "I-X")


@pytest.fixture(scope="module")
def vocabulary():
    return vocabulary_module.Vocabulary(TOKENS)


@pytest.fixture(params=["plain", "in graph"])
def tokenizer(request, vocabulary):
    if request.param == "plain":
        return full.FullTokenizer(vocabulary, do_lower_case=False)
    return in_graph.InGraphTokenizer(vocabulary, do_lower_case=False)


@pytest.fixture
def plain(vocabulary):
    return full.FullTokenizer(vocabulary, do_lower_case=False)


def sentence(words, tags=None, document=0):
    return examples.Sentence(
        words=tuple(words.split()), tags=tags and tuple(tags.split()), document=document
    )


def record(length=8, stride=2, **values):
    return features_module.Record(
        labels=LABELS,
        tag_scheme="iob2",
        do_lower_case=False,
        max_seq_length=length,
        doc_stride=stride,
        **values,
    )


def converted(tokenizer, *sentences, **settings):
    return features_module.convert_sentences_to_features(
        sentences, tokenizer, record(**settings)
    )


def test_the_tag_is_at_the_first_piece_of_its_word(tokenizer):
    rows = converted(tokenizer, sentence("a bcc", "O B-X"), sentence("c"))
    expected = {
        "input_ids": [
            [CLS, A, B, INNER_C, INNER_C, SEP, 0, 0],
            [CLS, C, SEP, 0, 0, 0, 0, 0],
        ],
        "input_mask": [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]],
        "segment_ids": [[0] * 8, [0] * 8],
        "tag_ids": [[-1, 0, 1, -1, -1, -1, -1, -1], [-1] * 8],
    }
    for name, column in expected.items():
        np.testing.assert_array_equal(rows.columns[name], column, err_msg=name)
        assert rows.columns[name].dtype == np.int32
    np.testing.assert_array_equal(rows.rows, [0, 0, 1])
    np.testing.assert_array_equal(rows.positions, [1, 2, 1])


def test_a_word_of_which_nothing_is_left_is_unknown_and_has_its_tag(tokenizer):
    words = examples.Sentence(words=("\u200b", "a"), tags=("B-X", "O"))
    rows = converted(tokenizer, words)
    assert rows.columns["input_ids"][0, :4].tolist() == [CLS, UNK, A, SEP]
    assert rows.columns["tag_ids"][0, 1:3].tolist() == [1, 0]


def test_a_long_sentence_has_windows_and_each_word_most_context(plain):
    # Six pieces to a window, which starts every two: 0-5, 2-7, 4-9.
    rows = converted(plain, sentence("a b c a b c a b c a"), length=8, stride=2)
    assert rows.columns["input_ids"][:, 1].tolist() == [A, C, B]
    # Of words 3 and 4 the second window has two pieces on the worse side, and so on.
    assert rows.rows.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert rows.positions.tolist() == [1, 2, 3, 4, 3, 4, 3, 4, 5, 6]


@pytest.mark.parametrize("stride", [1, 3, 6])
@pytest.mark.parametrize("document_context", [False, True])
def test_no_tag_is_lost_and_none_is_there_twice(plain, stride, document_context):
    generator = np.random.default_rng(5)
    words = ["a", "b", "c" * 5, "bc", "a" + "c" * 20]
    sentences = [
        examples.Sentence(
            words=tuple(generator.choice(words, size)),
            tags=tuple(generator.choice(LABELS, size)),
            document=index // 3,
        )
        for index, size in enumerate(generator.integers(1, 30, size=20))
    ]
    settings = {"stride": stride, "document_context": document_context}
    rows = converted(plain, *sentences, length=8, **settings)
    tags = [LABELS.index(tag) for one in sentences for tag in one.tags]
    first = [TOKENS.index(word[0]) for one in sentences for word in one.words]
    place = (rows.rows, rows.positions)
    np.testing.assert_array_equal(rows.columns["tag_ids"][place], tags)
    np.testing.assert_array_equal(rows.columns["input_ids"][place], first)
    assert np.sum(rows.columns["tag_ids"] >= 0) == len(tags)
    assert np.all(np.any(rows.columns["tag_ids"] >= 0, axis=1))  # No empty rows.


def test_sentences_in_capitals_are_true_cased_where_that_is_wanted(plain):
    headline = sentence("DD AA", "B-X O")
    ids = [
        converted(plain, headline, true_cases=cases).columns["input_ids"][0, 1:3]
        for cases in (None, {"dd": "d", "aa": "a"})
    ]
    assert ids[0].tolist() == [UNK, UNK]
    assert ids[1].tolist() == [TOKENS.index("d"), A]


def test_a_tag_that_the_model_has_not_is_no_tag(plain):
    rows = converted(plain, sentence("a b", "B-Y O"))
    assert rows.columns["tag_ids"][0, 1:3].tolist() == [-1, 0]
