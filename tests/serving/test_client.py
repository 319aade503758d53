import pathlib
import shutil

import pytest
import tensorflow as tf

from bert_tf.serving import client
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from tests import ring
from tests import runs
from tests.serving import rest_double

ASKED = {
    "single": {"text": ["the rain", "", "中文 été " * 20]},
    "pair": {"text": ["the rain", ""], "text_b": ["", "snow " * 20]},
    "choice": {"text": ["She", "He"], "endings": [["a", "rain"], ["a", "b", "c"]]},
    "squad": {"question": ["who?", "when?"], "context": ["Rain in 1902.", "rain"]},
    "tags": {"text": ["the rain, again", "", "a"]},
}


# Models on disk are queried in the tests of each task's signatures.
@pytest.mark.parametrize("kind", ring.quick("choice", of=ASKED))
def test_a_model_on_a_server_is_asked_as_its_run(exports, kind, monkeypatch, reported):
    run_dir, export_dir = exports[kind]
    items = list(zip(*ASKED[kind].values(), strict=True))
    items = [item[0] if len(item) == 1 else item for item in items]
    expected = predictors.load(run_dir).predict(items)
    double = rest_double.RestDouble(export_dir)
    with rest_double.serving(double.reply) as address:
        model = client.open_server(f"{address}/v1/models/topics/versions/1/")
        monkeypatch.setattr(serving_options, "QUERIES_PER_CALL", 2)
        answers = model.ask(**ASKED[kind])
    if kind == "single":  # Two batches, and the names of the classes once.
        assert len(double.requests) == 3
        assert reported[-2:] == [("query", 2, 3), ("query", 3, 3)]
    runs.assert_close(answers, expected)


@pytest.mark.parametrize(
    "reply, message",
    [
        ((500, b"<html>oh</html>"), "refused the query: 500, <html>oh</html>"),
        ((200, b"hello"), "is not JSON"),
        ((200, {"predictions": []}), "returned no outputs but"),
    ],
)
def test_a_server_that_does_not_answer_is_quoted(reply, message):
    with rest_double.serving(lambda path, body: reply) as address:
        with pytest.raises(ValueError, match=message):
            client.open_server(f"{address}/v1/models/topics").ask(text=["a"])


def test_a_server_that_is_not_there_is_named():
    with rest_double.serving(lambda path, body: (200, {})) as address:
        gone = f"{address}/v1/models/topics"
    with pytest.raises(ConnectionError, match=r"cannot be reached: .* that the server"):
        client.open_server(gone).ask(text=["a"])


@pytest.mark.parametrize(
    "kind, inputs, message",
    [
        ("single", {"text_b": ["b"]}, "takes text, got text and text_b"),
        ring.slow("pair", {}, "takes text and text_b, got text"),
        ring.slow("pair", {"text_b": ["b", "c"]}, "got 1 of text, 2 of text_b"),
    ],
)
def test_the_wrong_number_of_texts_is_refused(exports, kind, inputs, message):
    asked = client.open_saved_model(exports[kind][1])
    with pytest.raises(ValueError, match=message):
        asked.ask(text=["a"], **inputs)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("saved_model.pb", b"", r"1 cannot be loaded \(ValueError, .* 0 MetaGraphs"),
        ("saved_model.pb", b"\xff\xff broken", r"1 cannot be loaded \(OSError"),
        ("variables/variables.index", b"", r"too short to be an sstable\); if a file"),
        ("variables/variables.data-00000-of-00001", b"", "00001 is truncated; export"),
    ],
)
def test_a_damaged_folder_is_named(single_export, tmp_path, name, content, message):
    folder = pathlib.Path(shutil.copytree(single_export, tmp_path / "1"))
    (folder / name).write_bytes(content)
    with pytest.raises(OSError, match=message):
        client.open_saved_model(str(folder))


def test_a_saved_model_of_something_else_is_refused(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path / "other"))
    with pytest.raises(ValueError, match="no signature serving_default"):
        client.open_saved_model(str(tmp_path / "other")).ask(text=["a"])


def test_a_text_that_the_saved_model_refuses_is_an_error_of_the_query(single_export):
    asked, longest = client.open_saved_model(single_export), "é" * 2**19
    assert len(asked.ask(text=["the rain", longest])) == 2
    message = "/1 refused the query: .*Expected texts of at most 1048576 bytes"
    with pytest.raises(ValueError, match=message):
        asked.ask(text=["the rain", longest + "a"])


def test_an_answer_that_is_nan_is_refused():
    def call(name, inputs):
        outputs = {"label": ["rain", "rain"], "probabilities": [[0.5], [float("nan")]]}
        return {"labels": [["rain"]]} if name == "labels" else outputs

    with pytest.raises(ValueError, match=r"returned NaN \(probabilities\)"):
        client.Client(call).ask(text=["one", "two"])


def test_texts_are_any_iterable_but_not_the_characters_of_one_text():
    asked = client.Client(lambda name, inputs: {"value": [len(inputs["text"])] * 2})
    assert asked.ask(text=(text for text in ("a", "b"))) == [{"value": 2}] * 2
    with pytest.raises(ValueError, match="text: expected a list of texts, got one"):
        asked.ask(text="the rain")
    for endings in ("was", [], ["was"], ["was", ""]):
        with pytest.raises(ValueError, match=r"endings: query 1 has .* two or more"):
            asked.ask(text=["a", "b"], endings=[["is", "was"], endings])


def test_a_new_version_on_the_server_has_its_own_labels():
    versions = [["rain", "snow"], ["snow", "rain"], ["rain", "snow", "wind"]]

    def call(name, inputs):
        if name == "labels":
            return {"labels": [versions[0]]}
        probabilities = [0.1, 0.9, 0.0][: len(versions[0])]
        return {"label": [versions[0][1]], "probabilities": [probabilities]}

    asked = client.Client(call)
    while versions:
        [answer] = asked.ask(text=["a"])
        assert list(answer["probabilities"]) == versions[0]
        assert answer["probabilities"][answer["label"]] == 0.9
        versions.pop(0)


def test_ids_have_the_outputs_of_the_model(single_export):
    ids = {"input_ids": [[2, 5]], "input_mask": [[1, 1]], "segment_ids": [[0, 0]]}
    asked = client.open_saved_model(single_export)
    [answer] = asked.ask(signature="ids", **ids)
    expected = asked._call("ids", ids)
    assert answer == {name: values[0] for name, values in expected.items()}
