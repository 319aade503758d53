"""A loaded model, and the queue that divides and combines requests to it."""

import asyncio
import json
import re
import shutil
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.serving import export_layout
from bert_tf.serving import loaded_model
from bert_tf.serving import server_model
from tests import runs


@pytest.fixture(scope="module")
def model(single_export):
    return server_model.ServedModel(single_export)


def texts(*values):
    return {"text": np.array([text.encode() for text in values], object)}


def ids(*row):
    row = np.array([row], np.int32)
    zeros = np.zeros_like(row)
    return {"input_ids": row, "input_mask": zeros + 1, "segment_ids": zeros}


@pytest.fixture
def calls(model, monkeypatch):
    """Receives the number of rows of each call of the model."""
    return recorded(model, monkeypatch)


def recorded(model, monkeypatch):
    calls, compute = [], model.compute

    def record(signature, inputs):
        calls.append(len(next(iter(inputs.values()))))
        return compute(signature, inputs)

    monkeypatch.setattr(model, "compute", record)
    return calls


def answers(model, requests, seconds=60):
    """Returns the outputs, or the errors, of requests that wait together."""

    async def answer_all():
        queue = server_model.Queue()
        jobs = [
            server_model.Job(model, model.signatures[signature], inputs, encode=None)
            for signature, inputs in requests
        ]
        waiting = [job.outputs(queue) for job in jobs]
        async with asyncio.timeout(seconds):
            return await asyncio.gather(*waiting, return_exceptions=True)

    return [
        one if isinstance(one, Exception) else server_model.joined(one)
        for one in asyncio.run(answer_all())
    ]


def test_requests_are_computed_together_and_answered_apart(model, calls):
    requests = [
        ("serving_default", texts("rain", "the a")),
        ("ids", ids(2, 9, 3)),
        ("serving_default", texts("été")),
        ("serving_default", texts()),
        ("ids", ids(2, 9, 9, 3)),  # Another length, so another call.
        ("ids", ids(2, 8, 3)),
    ]
    outputs = answers(model, requests)
    assert calls == [3, 2, 1]
    for request, answer in zip(requests, outputs, strict=True):
        alone = model.compute(*request)
        for name, value in answer.items():
            assert value.shape == alone[name].shape
            runs.assert_close(value.tolist(), alone[name].tolist())


def test_rows_of_several_requests_are_limited(model, calls, monkeypatch):
    requests = [("serving_default", texts(*rows)) for rows in ("abc", "ab", "abcdef")]
    for most, together in ((4, [3, 2, 4, 2]), (5, [5, 5, 1])):
        monkeypatch.setattr(server_model, "_MAX_ROWS", most)
        answers(model, requests)
        assert calls == together
        calls.clear()


def test_a_large_request_is_computed_in_several_calls(model, calls, monkeypatch):
    monkeypatch.setattr(server_model, "_MAX_POSITIONS", 16)
    monkeypatch.setattr(server_model, "_MAX_ROWS", 4)
    large, small = [
        ("serving_default", texts(*["a"] * count, "été rain")) for count in (7, 1)
    ]
    outputs = answers(model, [large, small])
    assert calls == [4, 2, 3, 1]
    assert [len(answer["label"]) for answer in outputs] == [8, 2]


def test_a_request_whose_client_is_gone_is_not_computed(model, monkeypatch):
    monkeypatch.setattr(loaded_model.Signature, "ragged_answers", ["label"])
    calls, may_end = recorded(model, monkeypatch), threading.Event()
    compute = model.compute
    monkeypatch.setattr(
        model, "compute", lambda *call: may_end.wait() and compute(*call)
    )

    async def talk():
        queue = server_model.Queue()

        def start(*rows):
            signature, inputs = model.signatures["serving_default"], texts(*rows)
            job = server_model.Job(model, signature, inputs, encode=None)
            return weakref.ref(job), asyncio.ensure_future(job.outputs(queue))

        _, first = start("rain")
        await asyncio.sleep(0.1)  # It is being computed.
        job, gone = start("a", "b", "c")
        _, other = start("a", "b")
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        del gone
        assert job() is None  # Its inputs take no memory.
        may_end.set()
        await asyncio.gather(first, other)

    asyncio.run(talk())
    assert calls == [1, 2]


@pytest.mark.slow
def test_a_long_text_does_not_widen_the_answers_to_others(exports, monkeypatch):
    tagger = server_model.ServedModel(exports["tags"][1])
    rows = ["the rain", "rain " * 30, "a"]
    outputs = answers(tagger, [("serving_default", texts(row)) for row in rows])
    assert [answer["words"].shape[1] for answer in outputs] == [2, 30, 1]
    monkeypatch.setattr(server_model, "_MAX_ROWS", 1)
    calls = recorded(tagger, monkeypatch)
    [answer] = answers(tagger, [("serving_default", texts(*rows))])
    assert calls == [1, 1, 1]
    assert [sum(word != b"" for word in row) for row in answer["words"]] == [2, 30, 1]
    assert answer["starts"][0].tolist() == [0, 4, *[-1] * 28]


def test_a_bad_request_fails_alone(model, monkeypatch):
    good, bad = ("ids", ids(2, 9, 3)), ("ids", ids(2, 10**6, 3))
    outputs = answers(model, [good, bad, good])
    assert "logits" in outputs[0].keys() & outputs[2].keys()
    assert isinstance(outputs[1], ValueError)
    assert str(outputs[1]).endswith("got 1000000 in row 0 column 1")
    monkeypatch.setattr(server_model, "_MAX_ROWS", 1)
    columns = {
        name: np.concatenate([rows, bad[1][name]]) for name, rows in good[1].items()
    }
    [error] = answers(model, [("ids", columns)])
    assert str(error).endswith("row 0 column 1 (counted from row 1 of the request)")


@pytest.mark.parametrize(
    "error, reason",
    [
        (OSError("Out of memory"), ".* failed a warm-up request .* ids: Out of memory"),
        (TypeError("An error of this code"), "An error of this code"),
    ],
)
def test_a_model_that_can_no_longer_answer_ends_the_server(
    model, monkeypatch, error, reason
):
    def compute(*call):
        raise error

    monkeypatch.setattr(model, "compute", compute)
    failures = []
    monkeypatch.setattr(server_model, "end_process", lambda *end: failures.append(end))
    with pytest.raises(TimeoutError):
        answers(model, [("ids", ids(2, 9, 3))], 2)
    [(failure, code)] = failures
    assert code == 1
    assert re.fullmatch(rf"The model can no longer answer: {reason}\.", failure)


@pytest.mark.parametrize(
    "task, row, positions",
    [
        ({"max_seq_length": 16}, "a " * 9, 9),
        ({"max_seq_length": 16}, "雨" * 99, 16),
        ({"max_seq_length": 64}, "..." * 9, 3 + 27),
        ({"max_seq_length": 16, "doc_stride": 99}, "雨" * 23, 16 + 16),
        ({"max_seq_length": 16, "doc_stride": 5}, "雨" * 23, 16 + 2 * 16),
        ({"max_seq_length": 16}, ["a", "雨" * 99], 4 + 16),
    ],
)
def test_work_is_estimated_from_the_text(model, monkeypatch, task, row, positions):
    monkeypatch.setattr(model, "task", task)
    rows = np.array([row], object)
    rows = np.vectorize(str.encode, otypes=[object])(rows)
    assert model.positions({"text": rows}).tolist() == [positions]


@pytest.mark.parametrize(
    "values",
    [
        {"max_seq_length": "many"},
        {"max_seq_length": -5},
        {"max_seq_length": 10**9},
        {"doc_stride": 2.5},
    ],
)
def test_a_damaged_task_file_is_refused(single_export, tmp_path, values):
    folder = shutil.copytree(single_export, tmp_path / "1")
    (folder / "assets.extra" / "task.json").write_text(json.dumps(values))
    [[name, value]] = values.items()
    with pytest.raises(ValueError, match=rf"task\.json: {name} is {value!r}, expected"):
        server_model.ServedModel(str(folder))


def test_a_model_without_signatures_is_refused(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path))
    with pytest.raises(ValueError, match=r"saved_model\.pb has no signature; expected"):
        server_model.ServedModel(str(tmp_path))


def test_a_model_of_another_program_has_no_warm_up(tmp_path):
    module = tf.Module()
    module.call = tf.function(lambda x: {"y": x}, [tf.TensorSpec([None, 2])])
    tf.saved_model.save(module, str(tmp_path), signatures=module.call)
    signatures = server_model.ServedModel(str(tmp_path)).signatures
    assert list(signatures) == ["serving_default"]


def test_a_model_that_fails_its_warm_up_requests_is_refused(single_export, monkeypatch):
    wrong = [("ids", ids(10**6))]
    monkeypatch.setattr(export_layout, "warm_up_requests", lambda *_: wrong)
    with pytest.raises(OSError, match="failed a warm-up request to its signature ids"):
        server_model.ServedModel(single_export)
