"""The server's paths, gates and formats over a model that is a function."""

import asyncio
import base64
import contextlib
import importlib
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.serving import loaded_model
from bert_tf.serving import options as serving_options
from bert_tf.serving import server_model
from bert_tf.tokenization import vocabulary as vocabulary_module

for package in ("orjson", "prometheus_client", "starlette"):
    pytest.importorskip(package, reason="needs the extra server")
server_app = importlib.import_module("bert_tf.serving.server_app")
server_formats = importlib.import_module("bert_tf.serving.server_formats")
httpx = pytest.importorskip("httpx", reason="needs httpx")

PREDICT = "/v1/models/m:predict"


def signature(name, inputs=("text",), **outputs):
    text, ids = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.int32)
    return loaded_model.Signature(
        name=name,
        inputs=dict.fromkeys(inputs, ids if name == "ids" else text),
        outputs={key: tf.TensorSpec([None, *size]) for key, size in outputs.items()},
    )


def vectors(name, inputs):
    """Returns vectors that say which signature was called."""
    value = {"query": 1.0, "ids": 0.1}.get(name, 2.0)
    size = len(next(iter(inputs.values())))
    return {"embedding": np.full([size, 2], value, np.float32)}


def padded(rows, fill, kind):
    width = max(map(len, rows))
    return np.array([[*row, *[fill] * (width - len(row))] for row in rows], kind)


def tags(name, inputs):
    """Returns each character as a word, and those in upper case as entities."""
    rows = [text.decode() for text in inputs["text"]]
    return {
        "words": padded([[x.encode() for x in row] for row in rows], b"", object),
        "starts": padded([range(len(row)) for row in rows], -1, np.int64),
        "entity_texts": padded(
            [[x.encode() for x in row if x.isupper()] for row in rows], b"", object
        ),
    }


def fake_model(compute, *signatures):
    model = types.SimpleNamespace(
        name="m",
        version=3,
        signatures={one.name: one for one in signatures},
        task={"max_seq_length": 4, "task": "retrieval"},
        vocabulary=vocabulary_module.Vocabulary(["[PAD]", "[UNK]", "[CLS]", "[SEP]"]),
        compute=compute,
        warm_up=lambda: None,
    )
    model.positions = lambda inputs: server_model.ServedModel.positions(model, inputs)
    return model


IDS = ("input_ids", "input_mask", "segment_ids")
ENCODER = fake_model(
    vectors,
    *(signature(name, embedding=[2]) for name in ("serving_default", "query")),
    signature("ids", IDS, embedding=[2]),
)
TAGGER = fake_model(
    tags,
    signature("serving_default", words=[None], starts=[None], entity_texts=[None]),
)


def client(model=ENCODER, token=None, **options):
    """Returns a client of a server whose limits are small."""
    values = {"max_positions": 30, **options}
    options = serving_options.ServeModelOptions(export_dir="models", **values)
    app = server_app.Application(options, token)
    app.model = model
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    )


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(server_formats, "MAX_ROWS", 2)
    monkeypatch.setattr(server_app, "MAX_REQUESTS", 1)


def request(method, path, model=ENCODER, *, token=None, options=None, **values):
    asked = client(model, token, **options or {})
    return asyncio.run(asked.request(method, path, **values))


def post(path, model=ENCODER, **values):
    return request("POST", path, model, **values)


@pytest.mark.parametrize(
    "body, answer",
    [
        ({"inputs": {"text": ["ab", "c"]}}, {"outputs": [[2.0, 2.0]] * 2}),
        ({"inputs": ["ab", "c"]}, {"outputs": [[2.0, 2.0]] * 2}),
        ({"instances": ["ab", "c"]}, {"predictions": [[2.0, 2.0]] * 2}),
        ({"instances": [{"text": "ab"}]}, {"predictions": [[2.0, 2.0]]}),
        ({"inputs": ["a"], "signature_name": ""}, {"outputs": [[2.0, 2.0]]}),
        ({"inputs": ["a"], "signature_name": "query"}, {"outputs": [[1.0, 1.0]]}),
    ],
)
def test_an_answer_has_the_form_of_its_request(body, answer):
    for path in (PREDICT, "/v1/models/m/versions/3:predict"):
        assert post(path, json=body).json() == answer


def test_rows_have_no_padding():
    reply = post(PREDICT, TAGGER, json={"instances": ["é雨C", "f"]}).json()
    assert reply["predictions"] == [
        {"entity_texts": ["C"], "starts": [0, 1, 2], "words": ["é", "雨", "C"]},
        {"entity_texts": [], "starts": [0], "words": ["f"]},
    ]
    reply = post(PREDICT, TAGGER, json={"inputs": ["aB", "c"]}).json()
    assert reply["outputs"] == {
        "entity_texts": [["B"], [""]],
        "starts": [[0, 1], [0, -1]],
        "words": [["a", "B"], ["c", ""]],
    }


@pytest.mark.parametrize(
    "values, embedding",
    [
        ({"encoding_format": None, "dimensions": None}, [2.0, 2.0]),
        ({"dimensions": 2}, [2.0, 2.0]),
        ({"dimensions": 1}, [1.0]),  # Scaled to length 1.
        ({"input": [3, 1]}, [0.1, 0.1]),
        ({"input": [[3, 1], [1]]}, [0.1, 0.1]),
    ],
)
def test_embeddings_take_what_clients_of_openai_send(values, embedding):
    reply = post("/v1/embeddings", json={"input": "a", **values}).json()
    assert reply["data"][0]["embedding"] == pytest.approx(embedding, abs=1e-8)
    values = {"input": "a", **values, "encoding_format": "base64"}
    reply = post("/v1/embeddings", json=values).json()
    content = base64.b64decode(reply["data"][0]["embedding"])
    assert np.frombuffer(content, "<f4").tolist() == pytest.approx(embedding)


def test_float32_has_no_digits_of_float64():
    reply = post("/v1/embeddings", json={"input": [1]})
    assert b'"embedding":[0.1,0.1]' in reply.content


@pytest.mark.parametrize(
    "path, body, status, message",
    [
        (PREDICT, "{}", 400, "Expected either inputs or instances"),
        (PREDICT, "[]", 400, "The body must be a JSON object"),
        (PREDICT, "{", 400, "The body is not JSON"),
        (PREDICT, '{"instances": "a"}', 400, "instances must be a list"),
        (PREDICT, '{"instances": [{"text": "a"}, "b"]}', 400, "[1] has other names"),
        (PREDICT, '{"inputs": ["a", "b", "c"]}', 400, "at most 2 rows, got 3"),
        (PREDICT, '{"inputs": ["\\ud800"]}', 400, "The body is not JSON: "),
        (PREDICT, '{"signature_name": "x"}', 400, "Unknown signature 'x'; expected"),
        ("/v1/embeddings", '{"input": []}', 400, "a text or a list of texts"),
        ("/v1/embeddings", '{"input": "a", "dimensions": 3}', 400, "must be 1 to 2"),
        ("/v1/embeddings", '{"input": "a", "model": "n"}', 400, "'n' here, only m"),
        ("/v1/embeddings", '{"input": "a", "input_type": "query"}', 400, ":predict"),
        ("/v1/embeddings", '{"input": [[1], 2]}', 400, "input[1] must be a list of"),
        ("/v1/embeddings", '{"input": [[4]]}', 400, "word piece ids below 4"),
        ("/v1/embeddings", '{"input": [[1.0]]}', 400, "word piece ids below 4"),
        ("/v1/embeddings", '{"input": "a", "encoding_format": "x"}', 400, "or base64"),
        ("/v1/embeddings", '{"input": ' + "[" * 90_000, 400, "not JSON: depth"),
        ("/v1/models/m/versions/2:predict", "{}", 404, "Expected model m, version 3."),
        ("/v1/models/n:predict", "{}", 404, "Expected model m, version 3."),
        ("/metadata", "", 404, "No such path: /metadata."),
        ("/v1/models/m", "", 405, "Expected GET."),
    ],
)
def test_what_cannot_be_answered_has_a_status_and_a_reason(path, body, status, message):
    reply = post(path, content=body)
    error = reply.json()["error"]
    assert reply.status_code == status
    assert message in error
    assert len(error) < 400


@pytest.mark.parametrize("path", ["m", "m/versions/3"])
def test_predictions_are_posted(path):
    reply = request("GET", f"/v1/models/{path}:predict")
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


def test_the_work_and_the_padding_of_a_request_are_limited():
    reply = post(PREDICT, TAGGER, json={"inputs": ["雨 " * 8] * 2})
    assert reply.status_code == 200
    tagger = fake_model(tags, *TAGGER.signatures.values())
    tagger.task = {"max_seq_length": 8, "doc_stride": 2}
    reply = post(PREDICT, tagger, json={"inputs": ["雨" * 20]})
    assert reply.status_code == 400
    message = "Expected at most 30 word pieces in all rows and windows, got about 72"
    assert message in reply.json()["error"]


def test_a_text_that_would_delay_others_is_refused(monkeypatch):
    monkeypatch.setattr(server_app, "MAX_POSITIONS_OF_ROW", 5)
    assert post(PREDICT, TAGGER, json={"inputs": ["ab"] * 2}).status_code == 200
    reply = post(PREDICT, TAGGER, json={"inputs": ["雨" * 20]})
    assert reply.status_code == 200  # The model truncates it to 4 pieces.
    tagger = fake_model(tags, *TAGGER.signatures.values())
    tagger.task = {"max_seq_length": 4, "doc_stride": 2}
    reply = post(PREDICT, tagger, json={"inputs": ["雨" * 5]})
    message = "Expected at most 5 word pieces in a text and its windows, got about 12"
    assert message in reply.json()["error"]


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Host": "127.0.0.1:8501"}, 200),
        ({"Host": "Models.example.org"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://localhost:8501"}, 415),
        ({"X-Long": "a" * 2**16}, 400),
        ({"Origin": "http://x", "Content-Type": "application/json; charset=x"}, 200),
    ],
)
def test_requests_with_suspicious_headers_are_refused(headers, status):
    options = {"allowed_host": ("models.example.org",)}
    reply = post(PREDICT, content='{"inputs": ["a"]}', headers=headers, options=options)
    assert reply.status_code == status


@pytest.mark.parametrize(
    "path, credentials, status",
    [
        ("/", None, 401),
        ("/v1/models/m", "Bearer wrong", 401),
        ("/v1/models/m/", "Bearer secret", 200),  # A slash changes nothing.
        ("/v1/models/m", "Basic secret", 401),
        ("/readyz", None, 200),
    ],
)
def test_every_path_but_the_probes_needs_the_token(path, credentials, status):
    headers = {} if credentials is None else {"Authorization": credentials}
    reply = request("GET", path, token="secret", headers=headers)
    assert reply.status_code == status


def test_the_page_runs_only_its_own_script():
    reply = request("GET", "/")
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'nonce-" in policy
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_a_model_that_is_not_ready_says_so():
    assert request("GET", "/livez", model=None).status_code == 200
    for path in ("/readyz", "/v1/models/m", "/v1/models/m/metadata"):
        assert request("GET", path, model=None).status_code == 503
    assert post(PREDICT, model=None, json={"inputs": ["a"]}).status_code == 503


@pytest.fixture
def lines(monkeypatch):
    """The lines of the log."""
    lines = []
    monkeypatch.setattr(
        server_app.Application, "log", lambda _, line: lines.append(line)
    )
    return lines


@pytest.mark.parametrize(
    "log_format, line", [("text", ' status=404 id="a" '), ("json", '"status": 404')]
)
def test_a_line_of_the_log_is_text_or_json(log_format, line, capsys):
    headers = {"x-request-id": "a"}
    asked = client(log_format=log_format).get("/other", headers=headers)
    assert asyncio.run(asked).status_code == 404
    assert line in capsys.readouterr().err


def test_a_request_has_an_id_and_a_line_in_the_log(lines):
    asked = client()

    async def talk():
        headers = {"X-Request-ID": "abc-1"}
        reply = await asked.post(PREDICT, json={"inputs": ["a"]}, headers=headers)
        bad = await asked.get("/v1/x", headers={"X-Request-ID": "\t new"})
        return reply, bad, (await asked.get("/metrics")).text

    reply, bad, metrics = asyncio.run(talk())
    assert reply.headers["x-request-id"] == "abc-1"
    assert len(bad.headers["x-request-id"]) == 32
    assert [line["status"] for line in lines] == [200, 404]
    assert (lines[0]["id"], lines[0]["rows"], lines[0]["version"]) == ("abc-1", 1, 3)
    assert 'signature="",status="404",task="retrieval",version="3"}' in metrics
    assert 'bert_tf_seconds_count{part="queue",signature="serving_default"}' in metrics


def test_an_error_of_the_server_has_the_form_and_headers_of_every_answer(lines):
    complex_numbers = {"embedding": np.zeros([1, 2], np.complex64)}
    broken = fake_model(lambda *call: complex_numbers, *ENCODER.signatures.values())
    asked = client(broken)
    reply = asyncio.run(asked.post(PREDICT, json={"inputs": ["a"]}))
    assert reply.status_code == 500
    assert reply.headers["x-request-id"] in reply.json()["error"]
    assert [line.get("status") for line in lines] == [None, 500]
    assert lines[0]["error"].startswith("TypeError")


def test_a_client_learns_why_the_model_cannot_answer(lines):
    def compute(*call):
        raise OSError("Out of memory. " * 90)

    broken = fake_model(compute, *ENCODER.signatures.values())
    reply = post(PREDICT, broken, json={"inputs": ["a"]})
    assert reply.status_code == 500
    assert reply.json()["error"] == ("Out of memory. " * 90)[:400]


@pytest.mark.parametrize("path, status", [(PREDICT, 200), ("/metadata", 404)])
def test_an_answer_that_is_not_read_is_none(lines, path, status):
    values = {"export_dir": "models", "queue_timeout_seconds": 1.0}
    app = server_app.Application(serving_options.ServeModelOptions(**values))
    app.model = ENCODER
    scope = {"type": "http", "method": "POST", "path": path, "headers": []}
    scope |= {"query_string": b"", "server": None}
    sent, bodies = [], [b'{"inputs": ["a"]}']

    async def receive():
        if not bodies:
            await asyncio.sleep(60)
        return {"type": "http.request", "body": bodies.pop()}

    async def send(message):
        sent.append(message)
        if "body" in message:
            await asyncio.sleep(60)

    with contextlib.suppress(TimeoutError):  # Closes the connection.
        asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == status
    assert [line["status"] for line in lines] == [499]


def blocking_model():
    """Returns a model, and the events that say that it computes and let it go on."""
    is_computing, may_answer = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def compute(*call):
        loop.call_soon_threadsafe(is_computing.set)
        asyncio.run_coroutine_threadsafe(may_answer.wait(), loop).result()
        return vectors(*call)

    return fake_model(compute, *ENCODER.signatures.values()), is_computing, may_answer


def test_a_full_queue_does_not_wait_for_the_body():
    async def talk():
        model, is_computing, may_answer = blocking_model()
        asked = client(model)
        first = asyncio.create_task(asked.post("/v1/embeddings", json={"input": "a"}))
        await is_computing.wait()
        second = await asked.post("/v1/embeddings", json={"input": "a"})
        ready = await asked.get("/readyz")
        may_answer.set()
        return (await first).status_code, second, ready

    first, second, ready = asyncio.run(talk())
    assert (first, second.status_code, ready.status_code) == (200, 429, 503)
    assert [one.headers["retry-after"] for one in (second, ready)] == ["1", "5"]


def test_an_answer_that_is_late_gets_504_and_leaves_the_queue(monkeypatch, lines):
    monkeypatch.setattr(server_app, "MAX_REQUESTS", 2)

    async def talk():
        model, _, may_answer = blocking_model()
        asked = client(model, queue_timeout_seconds=1.0)
        replies = await asyncio.gather(
            *(asked.post("/v1/embeddings", json={"input": "a"}) for _ in range(2))
        )
        may_answer.set()
        return [reply.status_code for reply in replies]

    assert asyncio.run(talk()) == [504, 504]
    # The second one waits, or is computed together with the first.
    assert max(line["compute_ms"] for line in lines) > 500
    assert all(line["queue_ms"] + line["compute_ms"] > 500 for line in lines)


def test_a_wide_row_does_not_widen_the_others(monkeypatch):
    monkeypatch.setattr(server_model, "_MAX_ROWS", 1)
    monkeypatch.setattr(server_app, "MAX_BYTES_IN_PROGRESS", 2000)
    texts = ["abcdefghijklmnopqr", ""]
    assert post(PREDICT, TAGGER, json={"instances": texts}).status_code == 200
    reply = post(PREDICT, TAGGER, json={"inputs": texts})
    assert "takes too much memory" in reply.json()["error"]


def test_answers_wait_for_memory(monkeypatch):
    async def talk():
        asked, has_arrived, may_end = client(), asyncio.Event(), asyncio.Event()

        async def slow():
            yield b" " * 50
            has_arrived.set()
            await may_end.wait()

        monkeypatch.setattr(server_app, "MAX_BYTES_IN_PROGRESS", 80)
        held = asyncio.create_task(asked.post("/v1/embeddings", content=slow()))
        await has_arrived.wait()
        body = {"inputs": ["a"]}  # Whose answer takes 40 bytes.
        replies = [await asked.post(PREDICT, json=body)]
        may_end.set()
        await held
        replies.append(await asked.post(PREDICT, json=body))
        replies.append(await asked.post(PREDICT, json={"inputs": ["a"] * 2}))
        monkeypatch.setattr(server_app, "MAX_BYTES_IN_PROGRESS", 79)
        replies.append(await asked.post(PREDICT, json={"inputs": ["a"] * 2}))
        metrics = await asked.get("/metrics")
        assert "bert_tf_bytes_in_progress 0.0" in metrics.text
        return [reply.status_code for reply in replies]

    assert asyncio.run(talk()) == [429, 200, 200, 400]


def test_bodies_are_limited_in_time_and_size(monkeypatch):
    monkeypatch.setattr(server_app, "ARRIVAL_SECONDS", 0.1)

    async def slow():
        await asyncio.sleep(60)
        yield b"{}"

    async def talk():
        asked = client()
        late = await asked.post("/v1/embeddings", content=slow())
        # It does not hold a place.
        other = await asked.post("/v1/embeddings", json={"input": "a"})
        large = await asked.post("/v1/embeddings", content=b" " * (2**21 + 1))
        return [reply.status_code for reply in (late, other, large)]

    assert asyncio.run(talk()) == [408, 200, 413]
