"""TriviaQA in the layout of its release (triviaqa-rc) becomes SQuAD's format."""

import json

import pytest

from bert_tf.data import triviaqa
from bert_tf.tasks.question_answering import examples as examples_module

DOCUMENTS = {
    "Hob_Hayward.txt": "\n\nHob Hayward\n\nHe was a miller of  BREE  town.\n\nEnd.",
    "Mill.txt": "A mill grinds grain. One of them stands in Bree.",
    "Breeze.txt": "A breeze is a wind.",
}


def question(qas_id, pages, *, value, aliases=()):
    normalized = [alias.lower() for alias in (value, *aliases)]
    return {
        "Answer": {
            "Aliases": list(aliases),
            "NormalizedAliases": normalized,
            "NormalizedValue": value.lower(),
            "Type": "WikipediaEntity",
            "Value": value,
        },
        "EntityPages": [
            {"DocSource": "TagMe", "Filename": page, "Title": page.partition(".")[0]}
            for page in pages
        ],
        "Question": f"What is {qas_id}?",
        "QuestionId": qas_id,
        "QuestionSource": "http://www.example.com/",
    }


@pytest.fixture
def release(tmp_path):
    """Writes qa/wikipedia-train.json and evidence/wikipedia; returns their folder."""
    (tmp_path / "qa").mkdir()
    (tmp_path / "evidence" / "wikipedia").mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        path = tmp_path / "evidence" / "wikipedia" / name
        path.write_text(text, encoding="utf-8")
    questions = [
        question("tc_1", DOCUMENTS, value="Bree", aliases=["Bree Town", "Bree, Ea"]),
        question("tc_2", ["Mill.txt", "Lost.txt"], value="Grain"),
    ]
    write(tmp_path, questions)
    return tmp_path


def write(folder, questions):
    content = {"Data": questions, "Domain": "Wikipedia", "Version": 1.0}
    (folder / "qa" / "wikipedia-train.json").write_text(json.dumps(content))


def convert(run_tool, release, **changes):
    flags = {
        "qa_file": release / "qa" / "wikipedia-train.json",
        "evidence_dir": release / "evidence" / "wikipedia",
        "output_file": release / "squad.json",
    }
    return run_tool("convert_triviaqa", **flags | changes)


def test_paragraphs_are_the_first_words_of_documents_with_an_answer(
    run_tool, release, monkeypatch
):
    monkeypatch.setattr(triviaqa, "_NUM_WORDS", 9)
    result = convert(run_tool, release)
    assert "Wrote 2 pairs" in result.stdout
    assert "lacks 1 documents" in result.stderr
    squad_file = examples_module.read_squad(str(release / "squad.json"))
    first, second = squad_file.examples
    assert first.qas_id == "tc_1--Hob_Hayward.txt"
    # The text of the document itself, up to its ninth word.
    assert first.context.text == "Hob Hayward\n\nHe was a miller of  BREE  town."
    [answer] = first.answers
    assert answer.text == "BREE  town"  # Rather than "BREE", which begins there, too.
    assert first.context.text[answer.start :].startswith("BREE  town")
    # "Bree" is beyond the ninth word of Mill.txt, and not a word of Breeze.txt.
    assert second.qas_id == "tc_2--Mill.txt"
    assert second.answers[0].text == "grain"


@pytest.mark.parametrize(
    "text, names, answer",
    [
        ("Anna, Ann.", ["Ann"], ("Ann", 6)),  # Whole words.
        ("ANN\nLEE", ["Ann Lee"], ("ANN\nLEE", 0)),
        ("C++ and C", ["C++"], ("C++", 0)),  # Not a pattern.
        ("Lee, Ann", ["Ann", "Lee"], ("Lee", 0)),  # The earliest one.
        ("Straße", ["strasse"], None),
        ("Ann", ["", "Lee"], None),
        ("Ann", [""], None),
    ],
)
def test_the_earliest_answer_is_taken(text, names, answer):
    match = triviaqa.first_answer(text, names)
    assert (match and (match.group(), match.start())) == answer


@pytest.mark.parametrize(
    "change, message",
    [
        ({"evidence_dir": "nowhere"}, "nowhere has none of the documents; expected"),
        ({"qa_file": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_what_cannot_be_converted_is_one_clear_line(run_tool, release, change, message):
    result = convert(run_tool, release, **change, exit_code=1)
    assert message in result.stderr
    assert not (release / "squad.json").exists()


def test_a_file_without_answers_is_refused(run_tool, release):
    asked = question("tc_1", DOCUMENTS, value="Bree")
    del asked["Answer"]
    write(release, [asked])
    result = convert(run_tool, release, exit_code=1)
    assert "question 1 has no Answer; expected a training or dev" in result.stderr
