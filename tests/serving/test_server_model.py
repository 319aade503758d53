"""A loaded model, and the queue that divides and combines requests to it."""

import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.serving import server_model
from bert_tf.serving import warm_up


@pytest.fixture(scope="module")
def model(single_export):
    return server_model.LoadedModel(single_export)


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


def answers(model, requests, *, max_rows=32, failures=None):
    """Returns the jobs of requests that wait together, after all were computed."""
    queue = server_model.Queue(
        max_jobs=99,
        max_rows=max_rows,
        batch_seconds=0,
        fail=[].append if failures is None else failures.append,
    )
    jobs = [server_model.Job(model, *request) for request in requests]
    with queue._changed:  # Nothing is computed before all are there.
        for job in jobs:
            queue.put(job)
    for job in jobs:
        job.future.exception(timeout=60)
    return jobs


def test_requests_are_computed_together_and_answered_apart(model, calls):
    requests = [
        ("serving_default", texts("rain", "the a")),
        ("ids", ids(2, 9, 3)),
        ("serving_default", texts("été")),
        ("serving_default", texts()),
        ("ids", ids(2, 9, 9, 3)),  # Another length, so another call.
        ("ids", ids(2, 8, 3)),
    ]
    jobs = answers(model, requests)
    assert calls == [3, 2, 1]
    for job in jobs:
        alone = model.compute(job.signature, job.inputs)
        for name, value in job.future.result().items():
            assert value.shape == alone[name].shape
            if value.dtype == object:
                assert value.tolist() == alone[name].tolist()
            else:
                np.testing.assert_allclose(value, alone[name], atol=1e-5)


@pytest.mark.parametrize("max_rows, together", [(4, [3, 2, 6]), (5, [5, 6])])
def test_rows_of_several_requests_are_limited(model, calls, max_rows, together):
    requests = [("serving_default", texts(*rows)) for rows in ("abc", "ab", "abcdef")]
    answers(model, requests, max_rows=max_rows)
    assert calls == together


def test_a_large_request_is_computed_in_slices(model, calls, monkeypatch):
    monkeypatch.setattr(server_model, "_SLICE", 16)
    large, small = [
        ("serving_default", texts(*["a"] * count, "été rain")) for count in (7, 1)
    ]
    jobs = answers(model, [large, small], max_rows=4)
    assert calls == [4, 2, 3, 1]
    assert [len(job.future.result()["label"]) for job in jobs] == [8, 2]


def test_a_job_whose_client_is_gone_leaves_nothing_behind(model, calls):
    queue = server_model.Queue(max_jobs=1, max_rows=4, batch_seconds=0, fail=[].append)
    with queue._changed:  # Nothing is computed meanwhile.
        for _ in range(3):
            job = server_model.Job(model, "serving_default", texts("rain"))
            queue.put(job)
            queue.remove(job)
            assert job.inputs == {}
        assert queue._waiting == {False: [], True: []}
    assert (queue.size(), calls) == (0, [])


def test_a_long_text_does_not_widen_the_answers_to_others(exports, monkeypatch):
    monkeypatch.setattr(server_model, "_MAX_PADDED", 40)
    tagger = server_model.LoadedModel(exports["tags"][1])
    calls = recorded(tagger, monkeypatch)
    requests = [
        ("serving_default", texts(text))
        for text in ("the rain", "rain " * 30, "a", "été")
    ]
    jobs = answers(tagger, requests)
    assert calls == [3, 1]
    widths = [job.future.result()["words"].shape[1] for job in jobs]
    assert widths == [2, 30, 2, 2]
    [job] = answers(tagger, [("serving_default", texts("the rain", "rain " * 30))])
    words = job.future.result()["words"]
    assert [sum(word != b"" for word in row) for row in words] == [2, 30]


def test_a_bad_request_fails_alone(model):
    good, bad = ("ids", ids(2, 9, 3)), ("ids", ids(2, 10**6, 3))
    jobs = answers(model, [good, bad, good])
    errors = [job.future.exception() for job in jobs]
    assert [errors[0], errors[2], errors[1].status] == [None, None, 400]
    assert "input_ids must be at least 0" in str(errors[1])


def test_a_model_that_can_no_longer_answer_is_reported(model, monkeypatch):
    def fail(*call):
        raise server_model.RequestError(500, "Out of memory")

    monkeypatch.setattr(model, "compute", fail)
    failures = []
    [job] = answers(model, [("ids", ids(2, 9, 3))], failures=failures)
    assert job.future.exception().status == 500
    while not failures:
        threading.Event().wait(0.01)
    assert "can no longer answer: " in str(failures[0])
    assert "failed a warm-up request to its signature ids: Out" in str(failures[0])


@pytest.mark.parametrize(
    "task, row, positions",
    [
        ({"max_seq_length": 16}, "a " * 9, 9),
        ({"max_seq_length": 16}, "雨" * 99, 16),
        ({"max_seq_length": 16, "doc_stride": 5}, "雨" * 23, 16 + 2 * 16),
        ({"max_seq_length": 16}, ["a", "雨" * 99], 4 + 16),
    ],
)
def test_work_is_estimated_from_the_text(model, monkeypatch, task, row, positions):
    monkeypatch.setattr(model, "task", task)
    rows = np.array([row], object)
    rows = np.vectorize(str.encode, otypes=[object])(rows)
    assert model.positions({"text": rows}).tolist() == [positions]


def test_a_model_that_fails_its_warm_up_requests_is_refused(single_export, tmp_path):
    folder = shutil.copytree(single_export, tmp_path / "1")
    with tf.io.TFRecordWriter(str(folder.joinpath(*warm_up.PATH))) as writer:
        writer.write(warm_up.prediction_log("ids", ids(2, 10**6, 3)))
    with pytest.raises(OSError, match="failed a warm-up request to its signature ids"):
        server_model.LoadedModel(str(folder))
