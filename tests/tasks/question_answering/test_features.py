import numpy as np
import pytest

from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] who ? a ##b c d e f ( ) 1 ##9 - ."
TOKENIZER = full.FullTokenizer(vocabulary_module.Vocabulary(PIECES.split()))


def example(context, *, question="who?", **values):
    return examples_module.SquadExample(
        qas_id="1",
        question_text=question,
        context=examples_module.Context(context),
        **values,
    )


def converted(*given, is_training=False, **changes):
    sizes = {"max_seq_length": 9, "doc_stride": 2, "max_query_length": 3}
    return features_module.convert_examples_to_features(
        given,
        TOKENIZER,
        features_module.WindowSizes(**sizes | changes),
        is_training=is_training,
    )


def shown(row):
    return " ".join(TOKENIZER.convert_ids_to_tokens(row))


def test_rows_are_question_and_a_part_of_the_context():
    given = converted(example("ab c d e f"), example("c"))
    rows = given.rows(np.arange(len(given)))
    assert [shown(row) for row in rows["input_ids"]] == [
        "[CLS] who ? [SEP] a ##b c d [SEP]",
        "[CLS] who ? [SEP] c d e f [SEP]",
        "[CLS] who ? [SEP] c [SEP] [PAD] [PAD] [PAD]",
    ]
    np.testing.assert_array_equal(rows["input_mask"][2], [1, 1, 1, 1, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(rows["segment_ids"][2], [0, 0, 0, 0, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(given.example_index, [0, 0, 1])
    np.testing.assert_array_equal(given.span_index, [0, 1, 0])
    np.testing.assert_array_equal(given.lengths, [9, 9, 6])
    assert set(rows) == {"input_ids", "input_mask", "segment_ids"}


def test_a_long_question_is_cut_from_the_end():
    given = converted(example("c", question="a c d e f"), max_query_length=2)
    [row] = given.rows(np.arange(1))["input_ids"]
    assert shown(row).startswith("[CLS] a c [SEP] c [SEP]")


@pytest.mark.parametrize(
    "context, answer, start, positions",
    [
        ("ab c d e f", "c", 3, [(6, 6), (4, 4)]),  # In both windows.
        ("ab c d e f", "ab", 0, [(4, 5), (0, 0)]),  # [CLS] where it is not.
        ("ab c d e f", "d e", 5, [(0, 0), (5, 6)]),  # Only half in the first one.
        ("(19-c)", "19", 1, [(5, 6), (0, 0)]),  # Pieces of a word.
        ("(19-c)", "-c)", 3, [(0, 0), (5, 7)]),
        ("zz c", "zz", 0, [(4, 4)]),  # [UNK].
    ],
)
def test_positions_are_those_of_the_answers_pieces(context, answer, start, positions):
    answers = (examples_module.Answer(text=answer, start=start),)
    given = converted(example(context, answers=answers), is_training=True)
    rows = given.rows(np.arange(len(given)))
    pairs = zip(rows["start_positions"], rows["end_positions"], strict=True)
    assert [tuple(map(int, pair)) for pair in pairs] == positions


def test_an_impossible_question_has_its_answer_at_cls():
    none = example("c", is_impossible=True)
    rows = converted(none, is_training=True).rows(np.arange(1))
    assert (rows["start_positions"], rows["end_positions"]) == (0, 0)


def test_a_piece_counts_where_it_has_the_most_surroundings():
    # Windows: pieces 0-3, 2-5, 4-6.
    given = converted(example("a c d e f c d"))
    held = [(w, p) for w in range(3) for p in range(7) if _holds(given, w, p)]
    window, pieces = np.array(held).T
    is_best = features_module.is_max_context(given, window, pieces)
    best = {int(p): int(w) for w, p in np.array(held)[is_best]}
    assert best == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2}
    assert is_best.sum() == 7


def _holds(given, window, piece):
    first = given.first_piece[window]
    return first <= piece < first + given.num_pieces[window]


@pytest.mark.parametrize("folder", ["squad_v1", "squad_v2"])
@pytest.mark.parametrize("kind", ["train", "predict"])
def test_windows_are_those_of_2018(golden_windows, folder, kind):
    given, recorded, _ = golden_windows(folder, kind)
    columns = given.rows(np.arange(len(given)))
    columns |= {
        "unique_id": given.unique_ids,
        "example_index": given.example_index,
        "doc_span_index": given.span_index,
    }
    if kind == "train":
        columns["start_position"] = columns.pop("start_positions")
        columns["end_position"] = columns.pop("end_positions")
    if "is_impossible" in recorded:
        columns["is_impossible"] = [
            given.examples[index].is_impossible for index in given.example_index
        ]
    assert set(recorded.files) - set(columns) <= {"start_logits", "end_logits"}
    for name, column in columns.items():
        np.testing.assert_array_equal(column, recorded[name], err_msg=name)
