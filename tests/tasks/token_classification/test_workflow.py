import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.release import bundle
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.training import plots
from tests import runs


def test_an_evaluation_writes_what_the_plots_need(names_run, task_data):
    data = plots.read_data(str(names_run))
    path = task_data("token_classification") / "dev.txt"
    lines = path.read_text().splitlines()
    words = [line for line in lines if line and "-DOCSTART-" not in line]
    types = [line[-3:] if "-" in line else "O" for line in words]
    assert data["confusion"]["labels"] == ["LOC", "PER", "O"]
    for label, row in zip(
        ("LOC", "PER", "O"), data["confusion"]["counts"], strict=True
    ):
        assert sum(row) == types.count(label)
    baselines = data["baselines"]
    assert baselines["eval_accuracy"]["name"] == "most frequent tag"
    assert baselines["eval_accuracy"]["value"] == types.count("O") / len(words)
    assert baselines["eval_f1"]["value"] == 0


@pytest.mark.slow
def test_scores_of_the_test_file_stay_beside_those_of_the_development_file(
    tmp_path, names_run, names_options
):
    before = runs.scores(names_run)
    card = (names_run / "README.md").read_text()
    for name in ("eval_f1", "test_f1"):
        assert f"| {name} | {before[name]:.4f} |" in card
    run_dir = tmp_path / "run"
    shutil.copytree(names_run, run_dir)
    fine_tuning_run.run(names_options(run_dir, do_train=False, do_eval=True))
    assert runs.scores(run_dir) == before
    # Scores of another step are of another model.
    (run_dir / "eval_results.txt").write_text("eval_f1 = 0.5\nglobal_step = 60\n")
    fine_tuning_run.run(names_options(run_dir, do_train=False, do_predict=True))
    expected = {k: v for k, v in before.items() if k.startswith(("test_", "global"))}
    assert runs.scores(run_dir) == expected


def test_predictions_are_the_sentences_of_the_test_file_with_tags(names_run, task_data):
    path = task_data("token_classification") / "test.txt"
    sentences = [
        [line.split() for line in sentence.splitlines()]
        for sentence in path.read_text().split("\n\n")
        if sentence and not sentence.startswith("-DOCSTART-")
    ]
    words = [[word for word, _ in sentence] for sentence in sentences]
    answers = runs.json_lines(names_run / "predictions.jsonl")
    assert [answer["words"] for answer in answers] == words
    tags = [tag for answer in answers for tag in answer["tags"]]
    true_tags = [tag for sentence in sentences for _, tag in sentence]
    hits = sum(a == b for a, b in zip(tags, true_tags, strict=True))
    assert hits / len(tags) > 0.95
    loaded = bert_tf.load(str(names_run)).predict(words)
    assert tags == [tag for answer in loaded for tag in answer["tags"]]


def test_a_run_answers_texts_and_lists_of_words(names_run, caplog):
    tagger = bert_tf.load(str(names_run))
    text = "Anna Winter\tmakes bread in Lund."
    answers = tagger.predict([text, ["Anna", "Winter", "makes"], "", []])
    assert answers[0]["words"] == [
        "Anna", "Winter", "makes", "bread", "in", "Lund", "."
    ]  # fmt: skip
    assert answers[0]["tags"] == ["B-PER", "I-PER", "O", "O", "O", "B-LOC", "O"]
    places = zip(answers[0]["starts"], answers[0]["ends"], strict=True)
    assert [text[start:end] for start, end in places] == answers[0]["words"]
    assert answers[1]["starts"] == [0, 5, 12]
    assert answers[1]["ends"] == [4, 11, 17]
    empty = {"words": [], "tags": [], "starts": [], "ends": []}
    assert answers[2:] == [empty, empty]
    [answer] = tagger.predict([text], entities=True)
    assert min(answer["probabilities"]) > 0.5
    names = [(one["label"], one["text"], one["start"]) for one in answer["entities"]]
    assert names == [("PER", "Anna Winter", 0), ("LOC", "Lund", 27)]
    score = answer["entities"][0]["score"]
    assert score == pytest.approx(sum(answer["probabilities"][:2]) / 2)
    tagger.predict([["Anna,Otto"], "Rock-End 3,000"])
    assert "probably several words" not in caplog.text
    tagger.predict(["Anna,Otto"])
    assert "Words of the text (1), such as 'Anna,Otto'" in caplog.text


@pytest.mark.slow
def test_a_run_learns_which_words_its_texts_keep_whole(tmp_path, names_options):
    """The words of plain text are those of a column file with the same sentences."""
    rows = "Acme/B-LOC Corp./I-LOC of/O St./B-LOC Lô/I-LOC owns/O Ana/B-PER 's/O"
    sentence = [row.split("/") for row in f"{rows} ship/O ./O".split()]
    lines = "\n".join(f"{word} {tag}" for word, tag in sentence)
    (tmp_path / "train.txt").write_text(f"{lines}\n\n" * 16)
    text = "Acme Corp. of St. Lô owns Ana's ship."
    (tmp_path / "news.txt").write_text(text + "\n")
    options = names_options(
        tmp_path / "run",
        data_dir=str(tmp_path),
        num_train_epochs=1.0,
        do_predict=True,
        predict_file=str(tmp_path / "news.txt"),
        entities=True,
    )
    fine_tuning_run.run(options)
    words = [word for word, _ in sentence]
    path = tmp_path / "run" / "predictions.jsonl"
    written = json.loads(path.read_text())
    assert written["words"] == words
    assert written["starts"] == [0, 5, 11, 14, 18, 21, 26, 29, 32, 36]
    tagger = bert_tf.load(str(tmp_path / "run"))
    assert tagger.task.whole_words == ("'s", "Corp.", "St.")
    [of_text, of_words] = tagger.predict([text, words])
    assert (of_text["words"], of_text["tags"]) == (words, of_words["tags"])
    assert written["tags"] == of_text["tags"]
    assert len(written["probabilities"]) == len(words)
    assert {one["label"] for one in written["entities"]} <= {"LOC", "PER"}


def conll(*sentences):
    """Returns a column file of sentences such as "EU/B-ORG rejects/O"."""
    rows = [one.replace(" ", "\n").replace("/", " ") for one in sentences]
    return "\n\n".join(rows) + "\n"


@pytest.fixture
def small(names_options, tmp_path):
    """Returns options for small files that a test writes, "train" and others."""

    def create(values=(), **contents):
        for name, content in contents.items():
            (tmp_path / f"{name}.txt").write_text(content)
        defaults = {
            "data_dir": str(tmp_path),
            "train_batch_size": 1,
            "num_train_epochs": 1.0,
        }
        return names_options(tmp_path / "run", **defaults | dict(values))

    return create


@pytest.mark.parametrize(
    "train, values, scheme, labels",
    [
        ("a/I-X b/O", {}, "iob1", "O B-X I-X"),
        ("a/B-X b/O", {}, "iob2", "O B-X I-X"),
        ("a/S-X b/O", {}, "iobes", "O B-X I-X E-X S-X"),
        ("a/DT b/NN", {}, "none", "DT NN"),
        ("a/S-X b/O", {"tag_scheme": "none"}, "none", "O S-X"),
        ("a/B-X b/O", {"labels": "O,B-X,B-Y"}, "iob2", "O B-X B-Y"),
        ("a/B-X/DT b/O/NN", {}, "none", "DT NN"),
        ("a/B-X/DT b/O/NN", {"tag_column": 1}, "iob2", "O B-X I-X"),
        ("1/a/B-X 2/b/O", {"word_column": 1}, "iob2", "O B-X I-X"),
    ],
)
def test_tags_are_those_of_the_column_in_the_scheme(
    small, train, values, scheme, labels
):
    task = fine_tuning_run.prepare(small(values, train=conll(train))).record
    assert task.tag_scheme == scheme
    assert list(task.labels) == labels.split()


@pytest.mark.parametrize(
    "values, contents, message",
    [
        ({}, {"train": conll("a/B-X b/O", "c/O d/I-X", "e/B-X")}, "'I-X' cannot start"),
        (
            {"do_eval": True},
            {"train": conll("a/B-X b/O"), "dev": conll("a/O b/B-Y")},
            r"dev\.txt:2: the tag 'B-Y' is not one of the model's tags O, B-X, I-X",
        ),
        ({"do_predict": True}, {"train": conll("a/B-X b/O")}, r"test\.txt"),
        ({"document_context": True}, {"train": conll("a/B-X b/O")}, r"train\.txt has"),
        (
            {"feature_based": "concat_last_four"},
            {"train": conll("a/B-X b/O")},
            "needs 4 layers, but the encoder has 1",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_training(
    small, tmp_path, values, contents, message
):
    with pytest.raises((ValueError, OSError), match=message):
        fine_tuning_run.run(small(values, **contents))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_test_file_may_have_tags_that_the_model_has_not(small):
    report = fine_tuning_run.run(
        small(
            {"do_predict": True},
            train=conll("a/B-X b/O"),
            test=conll("a/B-Y b/O"),
        )
    )
    assert "test_recall = 0.0" in report


def test_windows_follow_length_stride_and_documents(small):
    long = conll("/O ".join("abcdefghij") + "/B-X")
    text = "-DOCSTART- O\n\n" + long + "\n" + conll("a/O") + "\n" + conll("b/O")
    rows = {
        # One row per step, for one epoch.
        name: fine_tuning_run.Run(small(values, train=text)).trainer.num_train_steps
        for name, values in {
            "whole": {"max_seq_length": 12},
            "cut": {"max_seq_length": 8},
            "document": {"max_seq_length": 16, "document_context": True},
        }.items()
    }
    assert rows == {"whole": 3, "cut": 3 + 1, "document": 1}


@pytest.mark.slow
def test_true_cases_are_learned_and_kept_with_the_run(small, tmp_path):
    values = {"do_lower_case": False, "true_case": True}
    train = conll("A/O cat/O sees/O Lund/B-X", "CAT/O SEES/O LUND/B-X")
    fine_tuning_run.run(small(values, train=train))
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["true_cases"] == {"cat": "cat", "sees": "sees"}
    tagger = bert_tf.load(str(tmp_path / "run"))
    in_capitals, cased = tagger.predict([["CAT", "SEES", "LUND"]] * 2)
    assert in_capitals == cased
    assert in_capitals["words"] == ["CAT", "SEES", "LUND"]  # Answers keep the case.


@pytest.mark.slow
def test_the_frozen_encoder_keeps_its_weights_and_names_are_still_found(
    tmp_path, names_options, golden
):
    prefix = str(golden / "model" / "bert_model.ckpt")
    options = names_options(
        tmp_path,
        init_checkpoint=prefix,
        bert_config_file=str(golden / "model" / "bert_config.json"),
        feature_based="last",
        learning_rate=1e-2,
        train_batch_size=16,
        num_train_epochs=24.0,
        do_eval=True,
    )
    fine_tuning_run.run(options)
    before = bundle.read_names_and_shapes(prefix)
    encoder = [name for name in before if name.startswith("bert/")]
    weights = bundle.read(bundle.latest(str(tmp_path)), encoder)
    for name, weight in bundle.read(prefix, encoder).items():
        np.testing.assert_array_equal(weights[name], weight, err_msg=name)
    assert runs.scores(tmp_path)["eval_f1"] > 0.7
    [answer] = bert_tf.load(str(tmp_path)).predict([["Anna", "Winter", "dance"]])
    assert len(answer["tags"]) == 3
