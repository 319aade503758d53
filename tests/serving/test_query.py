import io
import json

import pytest

from bert_tf import options as options_module
from bert_tf.serving import client
from bert_tf.serving import options
from bert_tf.serving import query


class FakeClient:
    """Remembers what it was asked, and always says rain."""

    def predict(self, texts, texts_b=None):
        self.asked = (texts, texts_b)
        answer = {"label": "rain", "probabilities": {"rain": 0.75, "été": 0.25}}
        return [answer] * len(texts)


@pytest.fixture
def asked(monkeypatch):
    fake = FakeClient()
    monkeypatch.setattr(client, "open_saved_model", lambda export_dir: fake)
    return fake


def ask(lines=None, **values):
    return query.run(
        options.QuerySavedModelOptions(export_dir="x", **values), lines=lines
    )


def test_an_answer_is_a_line_of_json_that_people_can_read(asked):
    assert ask(text="Wet, again") == (
        '{"text": "Wet, again", "label": "rain", '
        '"probabilities": {"rain": 0.75, "été": 0.25}}'
    )


def test_a_pair_is_asked_as_a_pair(asked):
    assert json.loads(ask(text="a", text_b="b"))["text_b"] == "b"
    assert asked.asked == (["a"], ["b"])


def test_several_texts_are_asked_together_and_keep_their_commas(asked):
    report = ask(text=("one", "two, three"))
    assert len(report.split("\n")) == 2
    assert asked.asked == (["one", "two, three"], None)


def test_lines_of_standard_input_are_asked_together(asked):
    report = ask(text="-", lines=["one\n", "two, three\r\n"])
    assert [json.loads(line)["text"] for line in report.split("\n")] == [
        "one",
        "two, three",
    ]
    assert asked.asked == (["one", "two, three"], None)


def test_a_tab_in_standard_input_parts_a_pair(asked):
    ask(text="-", lines=["a\tb\n", "c\td\n"])
    assert asked.asked == (["a", "c"], ["b", "d"])


def test_standard_input_that_is_not_utf_8_is_named_with_its_line(asked, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"good\ncaf\xe9\n"), errors="surrogateescape")
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(ValueError, match=r"standard input:2: not UTF-8 \(byte 4"):
        ask(text="-")


@pytest.mark.parametrize(
    "lines, message",
    [
        ([], "has no line"),
        (["a\tb\n", "c\n"], "got lines with 1 and 2"),
        (["a\tb\tc\n"], "got lines with 3"),
    ],
)
def test_standard_input_of_another_form_is_refused(asked, lines, message):
    with pytest.raises(ValueError, match=message):
        ask(text="-", lines=lines)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"text": "a"}, "one of --export_dir and --server"),
        ({"text": "a", "export_dir": "x", "server": "y"}, "one of --export_dir and"),
        ({"text": "-", "text_b": "b", "export_dir": "x"}, "--text_b does not go with"),
        (
            {"text": ("a", "b"), "text_b": "b", "export_dir": "x"},
            r"a --text_b for each --text \(2\), got 1",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(values, message):
    with pytest.raises(options_module.OptionError, match=message):
        options.QuerySavedModelOptions(**values)
