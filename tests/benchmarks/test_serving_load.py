"""serving_load: what is recorded about failed requests."""

import importlib
import sys
import types

import pytest
import requests


@pytest.fixture
def load(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    yield importlib.import_module("serving_load")
    sys.modules.pop("serving_load")


def outcome_of(load, post, *, golden=None, leaves=False):
    session = types.SimpleNamespace(post=post)
    golden = golden or {"rain": {"label": ["x"]}}
    return load.ask(session, "http://server", golden, ["rain"], 0.0, leaves)[0]


@pytest.mark.parametrize(
    "status, outcome",
    [
        (429, "429"),
        (504, "504"),
        (500, "failed: status 500: lost"),
        (400, "failed: status 400: lost"),
    ],
)
def test_a_failed_request_is_counted_by_its_status(load, status, outcome):
    reply = types.SimpleNamespace(status_code=status, ok=False, text="lost\nline 2")
    assert outcome_of(load, lambda *_, **__: reply) == outcome


def test_a_text_that_the_model_refuses_is_no_failure(load):
    reply = types.SimpleNamespace(status_code=400, ok=False, text="too long")
    assert outcome_of(load, lambda *_, **__: reply, golden={"rain": {}}) == "refused"


def test_a_lost_connection_is_counted_by_its_exception(load):
    def lost(*_, **__):
        raise requests.ConnectionError("<Connection object at 0x7f12ab>: reset")

    expected = "failed: ConnectionError: <Connection object>: reset"
    assert outcome_of(load, lost) == expected
    assert outcome_of(load, lost, leaves=True) == "left"
