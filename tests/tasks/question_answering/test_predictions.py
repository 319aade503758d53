import json

import numpy as np
import pytest

from bert_tf.modeling import numerics
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import predictions as predictions_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] who ? a b c d e"
VOCABULARY = vocabulary_module.Vocabulary(PIECES.split())
ALIGNER = alignment.Aligner(VOCABULARY, do_lower_case=True)
LOW = -9.0


def windows_of(*contexts, doc_stride=2):
    """Returns the windows of contexts; the question takes the first three places."""
    given = [
        examples_module.SquadExample(
            qas_id=str(number),
            question_text="who",
            context=examples_module.Context(text),
        )
        for number, text in enumerate(contexts)
    ]
    sizes = features_module.WindowSizes(
        max_seq_length=9, doc_stride=doc_stride, max_query_length=1
    )
    return features_module.convert_examples_to_features(
        given, full.FullTokenizer(VOCABULARY), sizes, is_training=False
    )


def scores(given, rows):
    """Returns float32 [W, S]: LOW but for {place: score}, one dict per window."""
    logits = np.full((len(given), given.sizes.max_seq_length), LOW, np.float32)
    for row, places in enumerate(rows):
        for place, score in places.items():
            logits[row, place] = score
    return logits


def predicted(given, starts, ends=None, **rules):
    """Returns the predictions; the ends have the scores of the starts by default."""
    return predictions_module.predictions_of(
        given,
        (scores(given, starts), scores(given, ends or starts)),
        predictions_module.Rules(**rules),
        ALIGNER,
    )


def texts(prediction):
    return [candidate.text for candidate in prediction.candidates]


def test_the_best_pair_of_start_and_end_is_the_answer():
    given = windows_of("a b c d e")  # Places 3 to 7.
    [one] = predicted(given, [{4: 5.0, 3: 4.0}], [{5: 5.0, 4: 2.0}])
    assert texts(one)[:4] == ["b c", "a b c", "b", "a b"]
    assert one.candidates[0].score == 10.0
    odds = np.exp([0.0, -1.0])
    probabilities = [candidate.probability for candidate in one.candidates]
    np.testing.assert_allclose(probabilities[1] / probabilities[0], odds[1])
    assert sum(probabilities) == pytest.approx(1.0)
    best = one.answer(None)
    assert (best.start, best.end) == (2, 5)


@pytest.mark.parametrize(
    "starts, ends, answer",
    [
        ({5: 9.0, 3: 1.0}, {4: 9.0, 5: 0.5}, "a b"),  # No end before its start.
        ({1: 9.0, 4: 1.0}, {4: 9.0}, "b"),  # Nothing of the question.
        ({4: 1.0}, {8: 9.0, 4: 1.0}, "b"),  # Not [SEP].
        ({3: 1.0}, {7: 9.0, 5: 1.0}, "a b c"),  # At most three pieces.
    ],
)
def test_what_cannot_be_an_answer_is_passed_over(starts, ends, answer):
    given = windows_of("a b c d e")
    [one] = predicted(given, [starts], [ends], n_best_size=2, max_answer_length=3)
    assert one.answer(None).text == answer


def test_a_span_counts_in_the_window_with_more_around_it():
    given = windows_of("a b c d e a b", doc_stride=4)
    assert given.first_piece.tolist() == [0, 4]
    # Piece 4, "e", ends the first window (place 7) and starts the second (place 3): as
    # bad a place, but the first window is longer.
    same = [{7: 2.0}, {3: 5.0}]
    [one] = predicted(given, same, n_best_size=1)
    assert one.candidates[0].score == 4.0


def test_a_tie_between_windows_goes_to_the_first():
    given = windows_of("a b c d e a b")
    assert given.first_piece.tolist() == [0, 2]
    # Piece 3, "d", has one piece on its poorer side in both windows (places 6 and 4).
    same = [{6: 2.0}, {4: 5.0}]
    [one] = predicted(given, same, n_best_size=1)
    assert (texts(one), one.candidates[0].score) == (["d"], 4.0)
    # "a" in the first window and "e" in the second have the same score.
    same = [{3: 3.0}, {5: 3.0}]
    [one] = predicted(given, same, n_best_size=2, max_answer_length=1)
    assert texts(one) == ["a", "e"]


def test_equal_null_scores_keep_the_logits_of_the_first_window():
    given = windows_of("a b c d e a b")
    starts, ends = [{0: 1.0}, {0: -3.0}], [{0: -3.0}, {0: 1.0}]
    [one] = predicted(given, starts, ends, version_2_with_negative=True)
    [null] = [candidate for candidate in one.candidates if not candidate.text]
    assert (null.start_logit, null.end_logit) == (1.0, -3.0)


def test_the_list_has_different_texts_and_the_size_asked_for():
    given = windows_of("a b a")
    [one] = predicted(given, [{3: 5.0, 5: 4.0, 4: 3.0}], n_best_size=3)
    # "a" again, at place 5 (8.0), is left out; then a tie, the better start first.
    assert texts(one) == ["a", "a b a", "a b"]


def test_without_any_candidate_the_answer_is_that_of_2018():
    given = windows_of("a b")
    [one] = predicted(given, [{0: 5.0}], n_best_size=1)
    assert texts(one) == [predictions_module.NO_CANDIDATE]


@pytest.mark.parametrize(
    "null, listed, odds",
    [
        (4.0, ["", "a", "b"], 8.0 - 6.0),
        (3.0, ["a", "", "b"], 0.0),  # A tie: a text comes before no answer.
        (2.0, ["a", "", "b"], 4.0 - 6.0),
        (-4.0, ["a", "b", ""], -8.0 - 6.0),  # Beyond the list's size.
    ],
)
def test_no_answer_has_its_place_among_the_answers(null, listed, odds):
    given = windows_of("a b")
    same = [{0: null, 3: 3.0, 4: 1.0}]
    [one] = predicted(
        given,
        same,
        n_best_size=2 + (null > 0),
        version_2_with_negative=True,
        max_answer_length=1,
    )
    assert texts(one) == listed
    assert one.null_odds == odds
    assert one.no_answer_score == 2 * null
    assert one.answer(odds).text == "a"
    assert one.answer(odds - 0.1).text == ""


def test_the_null_score_is_the_lowest_of_all_windows():
    given = windows_of("a b c d e a b c")
    rows = [{0: 3.0}, {0: -2.0}, {0: 1.0}][: len(given)]
    [one] = predicted(given, rows, version_2_with_negative=True)
    assert one.no_answer_score == -4.0


def test_padding_is_never_chosen_once_it_is_taken_out():
    given = windows_of("a b")
    logits = scores(given, [{8: 9.0, 7: 9.0, 3: 1.0}])
    cleaned = predictions_module.without_padding(given, logits)
    assert cleaned[0, 3] == 1.0
    assert (cleaned[0, 6:] == numerics.ATTENTION_MASK_BIAS).all()
    [one] = predictions_module.predictions_of(
        given, (cleaned, cleaned), predictions_module.Rules(n_best_size=1), ALIGNER
    )
    assert texts(one) == ["a"]


def test_the_lines_say_where_answers_stand():
    given = windows_of("a  b", "c")
    rows = [{3: 3.0, 4: 4.0}, {0: 9.0, 3: 1.0}]
    answered = predicted(given, rows, version_2_with_negative=True)
    contents = predictions_module.file_contents(answered, 0.0)
    first, second = map(json.loads, contents["predictions.jsonl"].splitlines())
    assert (first["answer"], first["start"], first["end"]) == ("b", 3, 4)
    assert (second["answer"], second["start"], second["end"]) == ("", 0, 0)
    assert (second["score"], second["no_answer_score"]) == (2.0, 18.0)


@pytest.mark.parametrize("folder", ["squad_v1", "squad_v2"])
def test_files_are_those_of_2018_byte_by_byte(tmp_path, shared, golden_windows, folder):
    golden = shared / "golden" / folder
    given, recorded, settings = golden_windows(folder, "predict")
    names = ("n_best_size", "max_answer_length", "version_2_with_negative")
    answered = predictions_module.predictions_of(
        given,
        (recorded["start_logits"], recorded["end_logits"]),
        predictions_module.Rules(**{name: settings[name] for name in names}),
        alignment.Aligner(given.vocabulary, do_lower_case=True),
    )
    threshold = settings["null_score_diff_threshold"]
    if not settings["version_2_with_negative"]:
        threshold = None
    predictions_module.write_predictions(str(tmp_path), answered, threshold)
    for name in ("predictions.json", "nbest_predictions.json", "null_odds.json"):
        assert (tmp_path / name).exists() == (golden / name).exists()
        if (golden / name).exists():
            assert (tmp_path / name).read_bytes() == (golden / name).read_bytes()
