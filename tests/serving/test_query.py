import json

import pytest

from bert_tf.serving import client
from bert_tf.serving import options as serving_options
from bert_tf.serving import query


class FakeClient:
    """Records its queries and always answers rain."""

    def answers(self, signature, **inputs):
        self.signature = signature
        self.asked = inputs
        answer = {"label": "rain", "probabilities": {"rain": 0.75, "été": 0.25}}
        return [answer] * len(next(iter(inputs.values())))


@pytest.fixture
def asked(monkeypatch):
    fake = FakeClient()
    monkeypatch.setattr(client, "open_saved_model", lambda export_dir: fake)
    return fake


def ask(**values):
    options = serving_options.QuerySavedModelOptions(**{"export_dir": "x"} | values)
    return query.run(options)


def test_an_answer_is_a_line_of_json_that_people_can_read(asked):
    assert ask(text="Wet, again") == (
        '{"text": "Wet, again", "label": "rain", '
        '"probabilities": {"rain": 0.75, "été": 0.25}}'
    )


@pytest.mark.parametrize(
    "values, inputs",
    [
        ({"text": "a", "text_b": "b"}, {"text": ["a"], "text_b": ["b"]}),
        ({"text": ("one", "two, three")}, {"text": ["one", "two, three"]}),
        (
            {"question": ("who?", "when?"), "context": "Anna, 1902."},
            {"question": ["who?", "when?"], "context": ["Anna, 1902."] * 2},
        ),
        ({"text": "a", "signature": "query"}, {"text": ["a"]}),
    ],
)
def test_all_queries_are_asked_together_and_shown_with_their_answers(
    asked, values, inputs
):
    report = ask(**values)
    assert asked.asked == inputs
    assert asked.signature == values.get("signature", "serving_default")
    shown = [json.loads(line) for line in report.split("\n")]
    for name, column in inputs.items():
        assert [answer[name] for answer in shown] == column


def ask_file(path, content, **values):
    path.write_text(content, encoding="utf-8")
    return ask(input_file=str(path), **values)


def test_a_file_of_queries_is_answered_in_its_order(asked, tmp_path):
    report = ask_file(
        tmp_path / "texts.jsonl",
        '{"text": "one", "text_b": "a"}\n{"text_b": "b", "text": "two, three"}\n'
        '{"text": "four", "text_b": "c"}\n',
    )
    lines = [json.loads(line) for line in report.split("\n")]
    assert [(line["text"], line["text_b"]) for line in lines] == [
        ("one", "a"),
        ("two, three", "b"),
        ("four", "c"),
    ]
    assert asked.asked["text_b"] == ["a", "b", "c"]


def test_json_lines_keep_their_other_fields(asked, tmp_path):
    line = {"id": 7, "question": "Who?", "context": "Ada\nLovelace"}
    report = ask_file(tmp_path / "q.jsonl", json.dumps(line) + "\n")
    assert json.loads(report)["id"] == 7
    assert asked.asked == {"question": ["Who?"], "context": ["Ada\nLovelace"]}


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "is empty; expected one query per line"),
        (
            '{"text": "a", "text_b": "b"}\n{"text": "c"}\n',
            "line 2: the query has text; expected text and text_b",
        ),
        ("text,label\na,b\n", "line 1 is not JSON: .* one JSON object per line"),
        ('[{"text": "a"}]', "line 1: expected an object with the model's inputs"),
        ('{"txt": "a"}\n', "line 1: expected an object with the model's inputs"),
        ('{"text": 3}\n', "line 1: text must be a text, got 3"),
        ('{"text": "a", "endings": "b"}\n', "must be a list of texts"),
        ('{"text": "a", "label": "rain"}\n', "a field 'label', and so has"),
    ],
)
def test_a_file_with_a_mistake_is_refused(asked, tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        ask_file(tmp_path / "queries.jsonl", content)


def test_a_field_of_the_last_query_is_refused_at_the_first_answer(
    monkeypatch, tmp_path
):
    calls = []

    def call(signature, inputs):
        calls.append(inputs)
        return {"value": [0.5]}

    monkeypatch.setattr(client, "open_saved_model", lambda _: client.Client(call))
    monkeypatch.setattr(serving_options, "QUERIES_PER_CALL", 1)
    content = '{"text": "a"}\n{"text": "b", "value": 7}\n'
    with pytest.raises(ValueError, match="a field 'value', and so has"):
        ask_file(tmp_path / "queries.jsonl", content)
    assert calls == [{"text": ["a"]}]


def test_the_tools_export_a_run_and_ask_it(run_tool, pair_run, tmp_path):
    export_dir = tmp_path / "1"
    run_tool("export_saved_model", output_dir=pair_run, export_dir=export_dir)
    flags = {"export_dir": export_dir, "text": "a"}
    result = run_tool("query_saved_model", **flags, text_b="b")
    answer = json.loads(result.stdout)
    assert (answer["text"], answer["text_b"]) == ("a", "b")
    probabilities = answer["probabilities"]
    assert answer["label"] == max(probabilities, key=probabilities.get)
    result = run_tool("query_saved_model", **flags, exit_code=1)
    assert "takes text and text_b, got text" in result.refusal
