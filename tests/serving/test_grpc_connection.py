import time

import numpy as np
import pytest

from bert_tf.serving import client
from bert_tf.serving import connection
from bert_tf.serving import grpc_connection

grpc = pytest.importorskip("grpc")
pytest.importorskip(
    "tensorflow_serving.apis", reason="needs the extra serving (tensorflow-serving-api)"
)

from tests.serving import grpc_double  # noqa: E402, needs tensorflow-serving-api

TEXTS = ["the rain", "", "中文 été"]
NEVER_THERE = "grpc://127.0.0.1:9/v1/models/topics"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(connection, "BACKOFF_SECONDS", 0.05)


def failing(times, code):
    """Returns a function that fails several calls."""
    codes = iter([code] * times)

    def fail(context):
        if (code := next(codes, None)) is not None:
            context.abort(code, "try later")

    return fail


def ask(target, path="topics", **settings):
    url = f"grpc://{target}/v1/models/{path}"
    return client.open_server(url, connection.Settings(**settings)).predict(TEXTS)


def test_grpc_answers_as_the_saved_model(single_export):
    expected = client.open_saved_model(single_export).predict(TEXTS)
    double = grpc_double.GrpcDouble(single_export)
    with grpc_double.serving(double.predict) as target:
        answers = ask(target, "topics/versions/3", headers=("X-Team: a",))
    assert [a["label"] for a in answers] == [a["label"] for a in expected]
    for answer, one in zip(answers, expected, strict=True):
        np.testing.assert_allclose(
            [*answer["probabilities"].values()],
            [*one["probabilities"].values()],
            atol=1e-6,
        )
    assert double.requests[0].model_spec.version.value == 3
    assert double.metadata[0]["x-team"] == "a"


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
def test_an_overloaded_server_is_asked_again(single_export, code):
    fail = failing(2, grpc.StatusCode[code])
    double = grpc_double.GrpcDouble(single_export, fail)
    with grpc_double.serving(double.predict) as target:
        assert len(ask(target, num_retries=2)) == 3
    assert len(double.requests) == 3 + 1  # The names of the classes, too.


def test_failures_are_named(single_export):
    always = failing(9, grpc.StatusCode.UNAVAILABLE)
    double = grpc_double.GrpcDouble(single_export, always)
    with grpc_double.serving(double.predict) as target:
        with pytest.raises(ConnectionError, match="cannot be reached: try later"):
            ask(target, num_retries=0)
        assert len(double.requests) == 1
    with pytest.raises(ConnectionError, match=r"cannot be reached: .*refused"):
        client.open_server(NEVER_THERE).predict(["a"])


def test_refusals_and_time_outs_are_named(single_export):
    double = grpc_double.GrpcDouble(single_export, lambda context: time.sleep(0.5))
    with grpc_double.serving(double.predict) as target:
        with pytest.raises(ValueError, match="NOT_FOUND, Servable not found: other"):
            ask(target, "other")
        with pytest.raises(TimeoutError, match=r"did not answer within 0\.1 seconds"):
            ask(target, timeout_seconds=0.1)


def test_more_retries_than_grpc_makes_are_refused():
    settings = connection.Settings(num_retries=grpc_connection.MAX_RETRIES + 1)
    with pytest.raises(ValueError, match="gRPC makes at most 4 retries"):
        client.open_server(NEVER_THERE, settings)
