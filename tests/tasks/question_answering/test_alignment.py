import logging

import pytest

from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] steve smith ' s cafe ##s ( 18 ##95 - ) ."
VOCABULARY = vocabulary_module.Vocabulary(PIECES.split())
SIZES = features_module.WindowSizes(max_seq_length=32, doc_stride=8, max_query_length=4)


def tokenized(context):
    example = examples_module.SquadExample(
        qas_id="1", question_text="s", context=examples_module.Context(context)
    )
    windows = features_module.convert_examples_to_features(
        [example], full.FullTokenizer(VOCABULARY), SIZES, is_training=False
    )
    return windows.contexts[0]


@pytest.mark.parametrize(
    "context, pieces, text",
    [
        ("Steve Smith's cafe", (0, 1), "Steve Smith"),  # A part of a word.
        ("Steve Smith's cafe", (2, 3), "'s"),
        ("the  Cafés", (1, 2), "Cafés"),  # Accents and capitals come back.
        ("(1895-1895)", (1, 2), "1895"),  # The first one that looks so.
        ("(1895-1895)", (4, 5), "1895"),
        ("(1895-1895)", (2, 3), "95-"),
        ("zz Smith", (0, 1), "zz Smith"),  # [UNK] is not found again: whole words.
        ("Steve  Smith", (0, 1), "Steve Smith"),  # One space between words.
    ],
)
def test_pieces_become_the_characters_of_the_context(context, pieces, text):
    aligner = alignment.Aligner(VOCABULARY, do_lower_case=True)
    answer, start, end = aligner.spans_of(tokenized(context))(*pieces)
    assert answer == text
    assert " ".join(context[start:end].split()) == text


@pytest.mark.parametrize(
    "context, message",
    [
        ("zz Smith's", "Unable to find text: '[UNK] smith' in 'zz Smith's'"),
        ("Steve Smith\u00a0s", "Length not equal after stripping spaces"),
    ],
)
def test_what_is_not_found_again_is_whole_words_and_logged_if_asked(
    caplog, context, message
):
    with caplog.at_level(logging.INFO):
        quiet = alignment.Aligner(VOCABULARY, do_lower_case=True)
        span = quiet.spans_of(tokenized(context))(0, 1)
        assert span == (context, 0, len(context))
        assert not caplog.records
        verbose = alignment.Aligner(VOCABULARY, do_lower_case=True, verbose=True)
        assert verbose.spans_of(tokenized(context))(0, 1) == span
    assert message in caplog.text


@pytest.mark.parametrize(
    "context",
    [
        "Steve Smith's cafe (1895-1895).",  # Parts of words that occur twice.
        "Steve  Smith\t(95-95)  Cafés",  # Spaces to remove, and accents.
        "zz Smith (zz) steve",  # Some words are unknown.
        "Steve Smith\u00a0s \x07 cafe",  # A word of two tokens, and one of none.
        "smi\u0301th's 18 cafe\u0301s 95",  # Tokenization drops the accents.
        "\u0130s 18-18",  # Lowercased to two characters.
    ],
)
def test_known_places_are_what_the_search_finds(context):
    given = tokenized(context)
    count = len(given.piece_ids)
    pairs = [(i, j) for i in range(count) for j in range(i, count)]
    aligner = alignment.Aligner(VOCABULARY, do_lower_case=True)
    span_of = aligner.spans_of(given)
    for pair in pairs:
        assert span_of(*pair) == aligner._searched(given, *pair)
