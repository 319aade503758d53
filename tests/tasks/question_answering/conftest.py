"""A quiz that a tiny model learns in seconds, and options to train on it."""

import json

import pytest

from bert_tf.tasks.question_answering import options as question_answering_options

CONTEXT = "The river rises near Ulm and was bridged in {year} by Anna Holt."
QUESTIONS = {
    "Where does it rise?": "near Ulm",
    "When was it bridged?": "{year}",
    "Who bridged it?": "Anna Holt",
}


def squad(years, *, impossible=False):
    """Returns a SQuAD file's content: one paragraph per year, with three questions."""
    paragraphs = []
    for year in years:
        context = CONTEXT.format(year=year)
        qas = []
        for number, (question, answer) in enumerate(QUESTIONS.items()):
            text = answer.format(year=year)
            answers = [{"text": text, "answer_start": context.index(text)}]
            qas.append(
                {"id": f"{year}-{number}", "question": question, "answers": answers}
            )
        if impossible:
            qas = [{**qa, "is_impossible": False} for qa in qas]
            none = {"id": f"{year}-none", "question": "What does it cost?"}
            qas.append({**none, "answers": [], "is_impossible": True})
        paragraphs.append({"context": context, "qas": qas})
    return {"version": "1", "data": [{"title": "Rivers", "paragraphs": paragraphs}]}


@pytest.fixture(scope="session")
def write_squad(tmp_path_factory):
    """Writes what `squad` returns for some arguments; returns the path."""

    def write(*arguments, **keywords):
        path = tmp_path_factory.mktemp("squad") / "squad.json"
        path.write_text(json.dumps(squad(*arguments, **keywords)))
        return str(path)

    return write


@pytest.fixture(scope="session")
def quiz(write_squad):
    """File of 24 questions, all of them with an answer."""
    return write_squad(range(1900, 1908))


@pytest.fixture(scope="session")
def quiz_options(golden, quick_config, quiz):
    """Returns options for the quiz; keywords replace or add."""

    def create(output_dir, **values):
        defaults = {
            "output_dir": str(output_dir),
            "bert_config_file": quick_config,
            "vocab_file": str(golden / "vocab.txt"),
            "train_file": quiz,
            "predict_file": quiz,
            "do_train": True,
            "max_seq_length": 48,
            "max_query_length": 16,
            "doc_stride": 16,
            "train_batch_size": 8,
            "learning_rate": 1e-2,
            "num_train_epochs": 20.0,
        }
        return question_answering_options.RunSquadOptions(**defaults | values)

    return create
