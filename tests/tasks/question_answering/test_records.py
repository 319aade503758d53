"""Questions in memory."""

import pytest

from bert_tf.tasks.question_answering import records

ROW = {"question": "Who came?", "context": "Anna Holt came."}


def test_answers_may_be_a_dictionary_of_lists():
    answers = {"text": ["Anna", "Holt"], "answer_start": [0, 5]}
    content = records.squad_of([{**ROW, "answers": answers}])
    [question] = content["data"][0]["paragraphs"][0]["qas"]
    assert question["answers"] == [
        {"text": "Anna", "answer_start": 0},
        {"text": "Holt", "answer_start": 5},
    ]


@pytest.mark.parametrize(
    "texts, starts",
    [(["Anna", "Holt"], [0]), ("Anna", [0, 1, 2, 3]), ("Anna", 0), (["Anna"], None)],
)
def test_texts_and_starts_of_answers_must_be_lists_of_one_length(texts, starts):
    answers = {"text": texts, "answer_start": starts}
    with pytest.raises(ValueError, match=r"Row 1: .*; expected two lists of the same"):
        records.squad_of([{**ROW, "answers": answers}])
