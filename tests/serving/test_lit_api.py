"""The loop that takes requests from LitServe's queue loses none of them."""

import itertools
import queue
import types

import pytest

from bert_tf.serving import lit_api


def test_a_request_survives_a_process_that_gets_no_processor(monkeypatch):
    base = pytest.importorskip("litserve.loops.base")
    loop = lit_api._waiting_loop()
    monkeypatch.setattr(loop, "put_response", lambda **values: None)
    requests = queue.Queue()
    requests.put((0, "a request", 0.0, {"inputs": {}}))
    settings = types.SimpleNamespace(
        batch_timeout=0.002, max_batch_size=1, request_timeout=-1, stream=False
    )
    # Between its first two looks at the clock, a second passes.
    clock = itertools.chain([0.0, 1.0], itertools.repeat(1.0))
    monkeypatch.setattr(base.time, "monotonic", lambda: next(clock))
    found, timed_out = loop.get_batch_requests(settings, requests, transport=None)
    assert (found, timed_out) == ([(0, "a request", {"inputs": {}})], [])
