import logging

import numpy as np
import pytest

from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import predictions as predictions_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] steve smith ' s cafe ##s ( 18 ##95 - ) ."
PIECES += " 红 队 输 了 白 赢 。 ， タワー ##タワー を ##を black ##smith e ที ##น"
VOCABULARY = vocabulary_module.Vocabulary(PIECES.split())
TOKENIZER = full.FullTokenizer(VOCABULARY, do_lower_case=True)


def tokenized(text):
    context = examples_module.Context(text)
    return features_module._Contexts(TOKENIZER).tokenized(context)[0]


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


# In scripts without spaces, the places of pieces decide; elsewhere, the release.
@pytest.mark.parametrize(
    "word, covered",
    [
        ("红队。", ["红", "队", "。"]),
        ("红😀队", ["红", "😀", "队"]),  # [UNK] is one token.
        ("红지우", ["红", "지우"]),  # As one token of five letters.
        ("红\x01队", ["红", "队"]),  # A control character.
        ("红e\u0301", ["红", "e\u0301"]),  # The accent belongs to its letter.
        ("blacksmith", ["black", "smith"]),
    ],
)
def test_a_piece_covers_its_characters(word, covered):
    tokenize = TOKENIZER.basic_tokenizer.tokenize
    spans = alignment.piece_spans(word, TOKENIZER.tokenize(word), tokenize)
    assert [word[start:end] for start, end in spans] == covered


def test_pieces_of_another_word_are_unknown():
    tokenize = TOKENIZER.basic_tokenizer.tokenize
    assert alignment.piece_spans("红队", ["红"], tokenize) is None
    assert alignment.piece_spans("红", ["红", "队"], tokenize) is None


@pytest.mark.parametrize(
    "text, answer, start, pieces",
    [
        # The second occurrence, which answer_start names.
        ("红队输了，白队赢了。红队赢。", "红队", 10, "红 队"),
        # No text at answer_start, so the release searches.
        ("红队，白队输了。", "白队", 0, "白 队"),
        # No piece starts with the answer, so the release takes the whole text.
        ("をタワーを", "タワー", 1, "##タワー"),
        ("the blacksmith", "smith", 9, "black ##smith"),  # As the release does.
    ],
)
def test_training_takes_the_pieces_over_the_answer(text, answer, start, pieces):
    given = tokenized(text)
    example = examples_module.SquadExample(
        qas_id="1",
        question_text="?",
        context=given.context,
        answers=(examples_module.Answer(text=answer, start=start),),
    )
    first, last = features_module.answer_pieces(example, given, TOKENIZER)
    tokens = TOKENIZER.convert_ids_to_tokens(given.piece_ids)
    assert tokens[first : last + 1] == pieces.split()
    if answer == "红队":
        assert first == start


def test_the_pieces_decide_between_occurrences_of_an_answer():
    given = tokenized("红队😀了。红队赢")  # Inexact: [UNK].
    span_of = alignment.Aligner(VOCABULARY, do_lower_case=True).spans_of(given)
    assert (span_of(0, 1), span_of(5, 6)) == (("红队", 0, 2), ("红队", 5, 7))


@pytest.mark.parametrize(
    "text, pieces, answer",
    [
        ("红지우队。白队", "白 队", "白队"),  # Five letters became two.
        ("红😀队。白队", "队 。", "队。"),
        ("红😀队。白队", "[UNK] 队", "😀队"),
        ("x 红지우队", "红", "红"),
        # The release's answer: the whole word.
        ("smith지우", "[UNK]", "smith지우"),
    ],
)
def test_an_answer_is_what_its_pieces_cover(text, pieces, answer):
    given = tokenized(text)
    tokens = TOKENIZER.convert_ids_to_tokens(given.piece_ids)
    count = len(pieces.split())
    first = next(
        i for i in range(len(tokens)) if tokens[i : i + count] == pieces.split()
    )
    span_of = alignment.Aligner(VOCABULARY, do_lower_case=True).spans_of(given)
    span = span_of(first, first + count - 1)
    assert (span[0], text[slice(*span[1:])]) == (answer, answer)


def test_a_model_that_chooses_the_trained_pieces_gives_the_correct_answers():
    """The longest answers have five pieces; contexts have several windows."""
    texts = ("红지우队输了，白队赢了。后来红队也赢了。", "ที่น红タワーをを白队")
    answers = (("白队", 7), ("红队", 14), ("지우队输", 1), ("タワー", 5), ("白队", 10))
    contexts = list(map(examples_module.Context, texts))
    given = [
        examples_module.SquadExample(
            qas_id=str(number),
            question_text="?",
            context=contexts[number > 2],
            answers=(examples_module.Answer(text=text, start=start),),
        )
        for number, (text, start) in enumerate(answers)
    ]
    sizes = features_module.WindowSizes(
        max_seq_length=16, doc_stride=4, max_query_length=1
    )
    windows = features_module.convert_examples_to_features(
        given, TOKENIZER, sizes, is_training=True
    )
    logits = []
    for places in (windows.start_positions, windows.end_positions):
        chosen = np.arange(sizes.max_seq_length) == places[:, np.newaxis]
        logits.append((chosen & (places > 0)[:, np.newaxis]).astype(np.float32))
    predicted = predictions_module.predictions_of(
        windows,
        tuple(logits),
        predictions_module.Rules(),
        alignment.Aligner(VOCABULARY, do_lower_case=True),
    )
    assert [one.best.text for one in predicted] == [text for text, _ in answers]
    assert [one.best.start for one in predicted] == [start for _, start in answers]
