"""Tags from a SavedModel are those of Python, for any text."""

import random

import pytest

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import predictors

WORDS = (
    *(
        "the",
        "rain",
        "Rod",
        "bread",
        "Lund",
        "hello,",
        "(1895-1943)",
        "crème",
        "中文字",
    ),
    *("中文字", "A.B.", "x\u00a0y", "\ufffd", "\x01", "é́", "İst", "x" * 30),
)


def texts(count):
    generator = random.Random(5)
    found = ["", " \n", "\x01", "中文字" * 30, "x" * 300, "ROD GETS BREAD, LUND RAIN"]
    for _ in range(count):
        words = generator.choices(WORDS, k=generator.randint(1, 50))
        text = "".join(word + generator.choice((" ", "", "\n")) for word in words)
        found.append(text.upper() if generator.random() < 0.3 else text)
    return found


@pytest.mark.parametrize(
    "task",
    [
        {},
        {"doc_stride": 1},
        {"doc_stride": 14},  # Windows that touch.
        {"do_lower_case": False, "true_cases": {"rain": "rain", "the": "The"}},
    ],
    ids=str,
)
def test_a_saved_model_tags_as_python(write_tag_run, tmp_path, task):
    run_dir = write_tag_run(str(tmp_path / "run"), **task)
    asked = texts(30)
    expected = predictors.load(run_dir).predict(asked)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    assert client.open_saved_model(folder).ask(text=asked) == expected
    # Capitals decide something: without true-casing other tags come out.
    if "true_cases" in task:
        plain = write_tag_run(str(tmp_path / "plain"), do_lower_case=False)
        assert predictors.load(plain).predict(asked) != expected
