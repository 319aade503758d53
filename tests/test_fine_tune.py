"""The calls of `bert_tf.fine_tune`, each from examples to answers."""

import csv
import functools
import hashlib
import json

import pandas
import pytest

import bert_tf
from bert_tf import progress as progress_module


@pytest.fixture(scope="session")
def quick(golden, quick_config):
    """Keyword arguments of a model that learns in a second."""
    return {
        "bert_config_file": quick_config,
        "vocab_file": str(golden / "vocab.txt"),
        "max_seq_length": 24,
        "train_batch_size": 8,
        "learning_rate": 1e-2,
        "num_train_epochs": 10,
    }


RAIN = ("wet", "rain", "cloud", "storm")
SUN = ("dry", "heat", "light", "noon")
TEXTS = [
    f"{words[i % 4]} and {words[(i + i // 4) % 4]}"
    for words in (RAIN, SUN)
    for i in range(16)
]
LABELS = ["rain"] * 16 + ["sun"] * 16


# What the quick model needs besides `quick`, by function.
VALUES = {
    "answer_questions": {
        "max_query_length": 8,
        "max_seq_length": 32,
        "train_batch_size": 2,
    },
    "retrieve": {"max_query_length": 8, "train_batch_size": 4},
}


def tune(name, train, output_dir, quick, **values):
    """Calls a function of `fine_tune` silently without an `init_checkpoint`."""
    values = {**quick, **VALUES.get(name, {}), **values}
    with progress_module.reporting_to(None):
        return getattr(bert_tf.fine_tune, name)(train, None, output_dir, **values)


classify = functools.partial(tune, "classify")
tag = functools.partial(tune, "tag")
answer_questions = functools.partial(tune, "answer_questions")
choose = functools.partial(tune, "choose")
retrieve = functools.partial(tune, "retrieve")


@pytest.fixture(scope="module")
def classified(quick, tmp_path_factory):
    """The folder of a trained classifier, and its predictor."""
    folder = tmp_path_factory.mktemp("classify") / "run"
    train = list(zip(TEXTS, LABELS, strict=True))
    return folder, classify(train, folder, quick, validation=0.25)


def test_classify_returns_a_trained_predictor(classified):
    folder, model = classified
    found = model.predict(["wet and storm", "noon and dry"])
    assert [answer["label"] for answer in found] == ["rain", "sun"]
    assert bert_tf.load(str(folder)).predict(["dry and light"])[0]["label"] == "sun"
    recorded = json.loads((folder / "run.json").read_text())
    content = (folder / "data" / "train.jsonl").read_bytes()
    assert recorded["training_data"]["checksum"] == hashlib.sha256(content).hexdigest()
    rows = content.splitlines()
    assert len(rows) == 32
    assert json.loads(rows[0]) == {"text": TEXTS[0], "label": "rain"}


@pytest.mark.slow
def test_without_a_checkpoint_the_model_in_the_package_is_fine_tuned(tmp_path, capsys):
    train = [("wet and storm", "rain"), ("noon and dry", "sun")]
    values = {"max_seq_length": 8, "train_batch_size": 2, "num_train_epochs": 1}
    model = bert_tf.fine_tune.classify(train, output_dir=tmp_path, **values)
    assert model.predict(["dry and light"])[0]["label"] in ("rain", "sun")
    message = "starting from bert-tf-mini (small; pass bert-base-uncased for better"
    assert message in capsys.readouterr().err
    flags = json.loads((tmp_path / "run.json").read_text())["flags"]
    assert flags["init_checkpoint"] == "bert-tf-mini"
    assert (flags["learning_rate"], flags["bias_correction"]) == (3e-4, True)
    assert len((tmp_path / "vocab.txt").read_text().splitlines()) == 8000


def test_a_frame_gives_the_same_file_and_a_path_is_recorded(
    classified, quick, tmp_path
):
    folder, _ = classified
    frame = pandas.DataFrame({"label": LABELS, "text": TEXTS})
    path = tmp_path / "train.csv"
    frame.to_csv(path, index=False)
    for train, name in ((frame, "frame"), (path, "path")):
        # A wrong weight ends the call before training, but after the data is read.
        with pytest.raises(ValueError, match=r"^class_weights: .* are rain, sun"):
            classify(train, tmp_path / name, quick, class_weights="fog=2")
    written = (tmp_path / "frame" / "data" / "train.jsonl").read_bytes()
    assert written == (folder / "data" / "train.jsonl").read_bytes()
    assert not (tmp_path / "path" / "data").exists()


def test_the_same_call_reloads_a_run_and_other_examples_are_refused(
    classified, quick, capsys
):
    folder, first = classified
    train = list(zip(TEXTS, LABELS, strict=True))
    again = bert_tf.fine_tune.classify(train, None, folder, validation=0.25, **quick)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "evaluate: 1/1 batches" in shown.err
    assert "eval_accuracy = 1.0000" in shown.err
    assert again.predict(TEXTS[:2]) == first.predict(TEXTS[:2])
    with pytest.raises(ValueError, match="was trained on other data"):
        classify(train[1:], folder, quick, validation=0.25)
    assert len((folder / "data" / "train.jsonl").read_text().splitlines()) == 32


@pytest.mark.slow
def test_a_table_with_text_b_has_pairs_and_validation_may_be_examples(quick, tmp_path):
    others = [LABELS[0], LABELS[-1]] * 16
    train = (TEXTS, others, LABELS)
    held_out = [("wet and dry", "rain", "rain"), ("dry and wet", "sun", "sun")]
    model = classify(train, tmp_path / "run", quick, validation=held_out)
    assert set(model.predict([("wet", "rain")])[0]) == {"label", "probabilities"}
    assert {"eval_accuracy", "eval_loss"} <= model.scores.keys()


@pytest.mark.slow
def test_lists_of_labels_mean_several_labels(quick, tmp_path, capsys):
    labels = [["rain"], ["sun", "rain"], [], ["sun"]] * 8
    values = {"num_train_epochs": 1}
    model = classify((TEXTS, labels), tmp_path / "run", {**quick, **values})
    assert capsys.readouterr() == ("", "")
    assert set(model.predict(["wet"])[0]["probabilities"]) == {"rain", "sun"}
    with pytest.raises(ValueError, match=r"a label contains '\|'"):
        classify((TEXTS, [["a|b"]] * 32), tmp_path / "other", quick)
    with pytest.raises(ValueError, match=r"vectors of 0 and 1, such as \[1, 0\]; exp"):
        classify((TEXTS, [[1, 0], [0, 1]] * 16), tmp_path / "other", quick)


SENTENCES = [
    ([name, verb, "in", place], ["B-PER", "O", "O", "B-LOC"])
    for name in ("anna", "clara", "lena", "oslo")
    for verb, place in (("was", "london"), ("lives", "water"), ("sat", "bread"))
]


@pytest.mark.slow
def test_tag_learns_from_sentences_and_holds_some_out(quick, tmp_path):
    model = tag(SENTENCES, tmp_path / "run", quick, validation=0.25)
    [answer] = model.predict(["clara was in london"])
    assert answer["words"] == ["clara", "was", "in", "london"]
    assert set(answer["tags"]) <= {"O", "B-PER", "B-LOC", "I-PER", "I-LOC"}
    files = [
        (tmp_path / "run" / "data" / n).read_text() for n in ("train.txt", "dev.txt")
    ]
    sizes = [len(text.strip().split("\n\n")) for text in files]
    assert sizes == [9, 3]


def test_tagged_sentences_in_any_form_give_the_same_file(quick, tmp_path):
    words, tags = zip(*SENTENCES, strict=True)
    lines, columns = tmp_path / "t.jsonl", tmp_path / "t.txt"
    rows = [{"words": a, "tags": b} for a, b in SENTENCES]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    blocks = [
        "".join(f"{w}\t{t}\n" for w, t in zip(*s, strict=True)) for s in SENTENCES
    ]
    columns.write_text("\n".join(blocks))
    frame = pandas.DataFrame({"words": list(words), "tags": list(tags)})
    forms = [SENTENCES, (list(words), list(tags)), rows, frame, lines, columns]
    for number, train in enumerate(forms):
        output_dir = tmp_path / str(number)
        # A missing tag ends the call before training, but after the data is read.
        with pytest.raises(ValueError, match="'B-LOC' is not one of the model's tags"):
            tag(train, output_dir, quick, labels="O,B-PER")
        assert (output_dir / "data" / "train.txt").read_text() == columns.read_text()


QUESTIONS = [
    (f"who was in {place}?", f"{name} was in {place} with {other}.", name)
    for name, place, other in (
        ("anna", "london", "clara"),
        ("clara", "oslo", "lena"),
        ("lena", "bread", "anna"),
        ("the bee", "water", "the baker"),
    )
]
SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": context,
                    "qas": [
                        {
                            "id": str(number),
                            "question": question,
                            "answers": [{"text": answer, "answer_start": 0}],
                        }
                    ],
                }
                for number, (question, context, answer) in enumerate(QUESTIONS, start=1)
            ]
        }
    ]
}


@pytest.mark.slow
def test_answer_questions_learns_from_records(quick, tmp_path):
    model = answer_questions(QUESTIONS, tmp_path / "run", quick, validation=0.25)
    [found] = model.predict([("who was in london?", "anna was in london.")])
    assert found["answer"] in "anna was in london."
    assert "eval_f1" in model.scores


def test_questions_in_any_form_give_the_same_file(quick, tmp_path):
    names = ("question", "context", "answer")
    columns = dict(zip(names, map(list, zip(*QUESTIONS, strict=True)), strict=True))
    answers = [{"text": [answer], "answer_start": [0]} for answer in columns["answer"]]
    hugging_face = {**columns, "answers": answers}
    del hugging_face["answer"]
    table = tmp_path / "t.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([names, *QUESTIONS])
    frames = [pandas.DataFrame(columns), pandas.DataFrame(hugging_face)]
    for number, train in enumerate([QUESTIONS, columns, *frames, table, SQUAD]):
        output_dir = tmp_path / str(number)
        with pytest.raises(ValueError, match="do not fill one batch"):
            answer_questions(train, output_dir, quick, train_batch_size=1000)
        written = json.loads((output_dir / "data" / "train.json").read_text())
        assert written == SQUAD
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(SQUAD))
    with pytest.raises(ValueError, match="do not fill one batch"):
        answer_questions(path, tmp_path / "run", quick, train_batch_size=1000)
    assert not (tmp_path / "run" / "data").exists()


CHOICES = [
    (f"the {word} came", [f"and it was {first}", f"and it was {second}"], label)
    for word, first, second, label in zip(
        ("bee", "lamp", "baker", "river") * 4,
        ("honey", "light", "bread", "water") * 4,
        ("slow", "cold", "warm", "dry") * 4,
        (0, 0, 0, 0, 1, 1, 1, 1) * 2,
        strict=True,
    )
]


@pytest.mark.slow
def test_choose_learns_from_a_list_and_holds_some_out(quick, tmp_path):
    train = [
        (f"{start} {number}", *rest) for number, (start, *rest) in enumerate(CHOICES)
    ]
    model = choose(train, tmp_path / "run", quick, validation=0.25)
    [found] = model.predict([("the bee came", ["and it was honey", "slow"])])
    assert found["ending"] in ("and it was honey", "slow")
    names = ("train.jsonl", "validation.jsonl")
    texts = [(tmp_path / "run" / "data" / name).read_text() for name in names]
    assert [text.count("\n") for text in texts] == [12, 4]


PAIRS = [
    ("the bee", "honey and wax"),
    ("the lamp", "light at midnight"),
    ("the baker", "warm bread"),
    ("the river", "cold water"),
]


@pytest.mark.slow
def test_retrieve_finds_passages_of_the_training_data_or_of_a_file(quick, tmp_path):
    model = retrieve(PAIRS, tmp_path / "run", quick, validation=[PAIRS[0]])
    with pytest.raises(ValueError, match=r"a run with another corpus .*index\("):
        retrieve(PAIRS, tmp_path / "run", quick, corpus=["cold water"])
    [found] = model.predict(["the bee"], top_k=4)
    assert {one["text"] for one in found["passages"]} == {text for _, text in PAIRS}
    (tmp_path / "corpus.txt").write_text("cold water\nslow clocks\n")
    model.index(str(tmp_path / "corpus.txt"))
    [found] = model.predict(["the river"])
    assert {one["text"] for one in found["passages"]} == {"cold water", "slow clocks"}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"batch_size": 3}, "did you mean 'train_batch_size'"),
        ({"learning_rat": 1e-3}, "'learning_rat'; did you mean 'learning_rate'"),
        ({"do_train": True}, "omit do_train"),
        ({"qqqqq": 1}, r"classify\(\) has no argument 'qqqqq'; see its tool's flags"),
    ],
)
def test_unknown_arguments_are_refused(tmp_path, values, message):
    with pytest.raises(TypeError, match=message):
        bert_tf.fine_tune.classify([("a", "b")], None, tmp_path / "run", **values)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "train, values, message",
    [
        ([], {}, "has no rows"),
        (["wet", "dry"], {}, r"1 is 'wet'; expected a dictionary or \(text, label\)"),
        ([("a", "x"), ("b", "c", "y")], {}, "Row 1 has no column 'text_b'"),
        ([("a", "x")], {"validation": 0.7}, "validation=0.7: expected a share above 0"),
        ([("a", "x")], {"eval_every_steps": 5}, "Evaluating .* needs validation"),
        ([("a", "x"), ("b", "y")], {"validation": 0.25}, "validation=0.25 of 2"),
        ([("a", 1)], {"label_column": ["x", "y"]}, r"label_column is .*; expected one"),
    ],
)
def test_bad_data_and_options_are_named_without_flags(
    quick, tmp_path, train, values, message
):
    with pytest.raises((ValueError, OSError), match=message) as caught:
        classify(train, tmp_path / "run", {**quick, **values})
    assert "--" not in str(caught.value)
