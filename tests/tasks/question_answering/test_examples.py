import json
import logging

import pytest

from bert_tf.data import squad_json
from bert_tf.tasks.question_answering import examples as examples_module

CONTEXT = "Anna Holt (1871-1940) built it."


def question(**changes):
    qa = {
        "id": "a",
        "question": "Who?",
        "answers": [{"text": "Anna", "answer_start": 0}],
    }
    return {key: value for key, value in (qa | changes).items() if value is not None}


def content(*questions, context=CONTEXT):
    return {
        "data": [
            {
                "title": "Holt",
                "paragraphs": [{"context": context, "qas": list(questions)}],
            }
        ]
    }


@pytest.fixture
def read(tmp_path):
    def read(value):
        path = tmp_path / "quiz.json"
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return examples_module.read_squad(str(path))

    return read


def test_a_file_is_read_question_by_question(read):
    squad_file = read(content(question(), question(id="b", answers=None)))
    first, second = squad_file.examples
    assert (first.qas_id, first.question_text) == ("a", "Who?")
    assert first.answers == (examples_module.Answer(text="Anna", start=0),)
    assert second.answers == ()
    assert first.context is second.context
    assert not squad_file.is_version_2
    assert not squad_file.has_answers


def test_a_context_is_cut_where_the_release_cuts_it():
    context = examples_module.Context(" one\ttwo\u202fthree\u00a0four\nfive ")
    assert context.words == ["one", "two", "three\u00a0four", "five"]
    assert context.starts == [1, 5, 9, 20]
    assert [context.word_at(place) for place in (0, 1, 4, 5, 19, 24)] == [
        0,
        0,
        0,
        1,
        2,
        3,
    ]


def test_impossible_questions_make_a_file_one_of_version_2(read):
    squad_file = read(content(question(answers=[], is_impossible=True)))
    assert squad_file.is_version_2
    assert squad_file.has_answers
    [example] = examples_module.training_examples(
        squad_file, version_2_with_negative=True
    )
    assert example.is_impossible


def test_the_first_of_several_answers_is_trained_on(read):
    answers = [{"text": "Holt", "answer_start": 5}, {"text": "Anna", "answer_start": 0}]
    squad_file = read(content(question(answers=answers)))
    [example] = examples_module.training_examples(
        squad_file, version_2_with_negative=False
    )
    assert examples_module.answer_words(example) == (1, 1)


def test_an_answer_that_words_do_not_show_is_left_out_with_a_warning(read, caplog):
    context = "It was built by Anna\u00a0Holt. Much later it fell."
    squad_file = read(
        content(
            question(answers=[{"text": "Anna\u00a0Holt", "answer_start": 16}]),
            question(id="b", answers=[{"text": "later", "answer_start": 32}]),
            context=context,
        )
    )
    with caplog.at_level(logging.WARNING):
        kept = examples_module.training_examples(
            squad_file, version_2_with_negative=False
        )
    assert [example.qas_id for example in kept] == ["b"]
    assert "question a is left out" in caplog.text


@pytest.mark.parametrize(
    "changes, version_2, message",
    [
        ({"answers": [{"text": "Berta", "answer_start": 0}]}, False, "'Berta'"),
        ({"answers": [{"text": "", "answer_start": 0}]}, False, "its answer '' is not"),
        ({"answers": [{"text": "Anna", "answer_start": -1}]}, False, "no answer_start"),
        ({"answers": []}, False, "question a: it has no answer; training needs one"),
        ({"answers": [], "is_impossible": True}, False, "--version_2_with_negative"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(read, changes, version_2, message):
    squad_file = read(content(question(**changes)))
    with pytest.raises(ValueError) as raised:
        examples_module.training_examples(squad_file, version_2_with_negative=version_2)
    assert message in str(raised.value)
    assert "quiz.json" in str(raised.value)


@pytest.mark.parametrize(
    "value, message",
    [
        ("{", "quiz.json is not JSON"),
        ({"version": "1.1"}, "quiz.json: data is missing"),
        ({"data": []}, "contains no questions"),
        ({"data": [{"paragraphs": [{"qas": []}]}]}, "paragraph 1: context is missing"),
        (content(question(question=None)), "question 1 (a): question is missing"),
        (content(question(question="\u00a0")), "question 1 (a): its question is blank"),
        (content(question(answers=["x"])), "an answer: expected an object with text"),
        (
            content(question(answers=[{"text": "x", "answer_start": "0"}])),
            "expected answer_start to be a whole number",
        ),
        (content(question(), question()), "as article 1 (Holt), paragraph 1, question"),
        (content(question(), context="a" * 100_001), "context has 100001 characters"),
    ],
)
def test_bad_files_are_refused_with_the_place(read, value, message):
    with pytest.raises(ValueError) as raised:
        read(value)
    assert message in str(raised.value)
    assert "quiz.json" in str(raised.value)


ROW = {"question": "Who came?", "context": "Anna Holt came."}


@pytest.mark.parametrize(
    "texts, starts",
    [(["Anna", "Holt"], [0]), ("Anna", [0, 1, 2, 3]), ("Anna", 0), (["Anna"], None)],
)
def test_texts_and_starts_of_answers_must_be_lists_of_one_length(texts, starts):
    answers = {"text": texts, "answer_start": starts}
    with pytest.raises(ValueError, match=r"Row 1: .* two lists of the same"):
        squad_json.from_rows([{**ROW, "answers": answers}])
