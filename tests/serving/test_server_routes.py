"""The paths over a model that is a function; needs the extra `server`."""

import asyncio

import numpy as np
import pytest
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from bert_tf.serving import saved_signatures
from bert_tf.serving import server_limits
from bert_tf.serving import server_routes

pytest.importorskip("litserve", reason="needs the extra server")
pytest.importorskip("prometheus_client", reason="needs the extra server")
httpx = pytest.importorskip("httpx", reason="needs httpx")


def signature(name):
    definition = meta_graph_pb2.SignatureDef()
    definition.inputs["text"].dtype = types_pb2.DT_STRING
    definition.inputs["text"].tensor_shape.dim.add(size=-1)
    for size in (-1, 2):
        definition.outputs["embedding"].tensor_shape.dim.add(size=size)
    return saved_signatures.Signature(name=name, definition=definition)


async def vectors(request):
    """Returns vectors that say which signature was called."""
    value = 1.0 if request["signature"] == "query" else 2.0
    rows = len(request["inputs"]["text"])
    return {"outputs": {"embedding": np.full([rows, 2], value)}, "rows": rows}


def client(compute=vectors):
    """Returns a client of a server that has one place in its queue."""
    from starlette import applications
    from starlette import exceptions

    routes = server_routes.Routes(
        name="m",
        version=1,
        signatures={name: signature(name) for name in ("serving_default", "query")},
        max_queue_size=1,
        body_timeout_seconds=0.1,
        limits=server_limits.ServerLimits(max_rows=2, max_padded_bytes=100),
        compute=compute,
    )
    app = applications.Starlette(
        routes=routes.all(),
        exception_handlers={exceptions.HTTPException: server_routes.error_reply},
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://m")


def post(path, **request):
    return asyncio.run(client().post(path, **request))


@pytest.mark.parametrize("kind, value", [("query", 1.0), ("document", 2.0)])
def test_queries_and_documents_have_their_own_signatures(kind, value):
    reply = post("/v1/embeddings", json={"input": "a", "input_type": kind})
    assert reply.json()["data"][0]["embedding"] == [value, value]


@pytest.mark.parametrize("dimensions, status", [(2, 200), (None, 200), (8, 400)])
def test_only_the_length_of_the_model_s_vectors_can_be_asked_for(dimensions, status):
    reply = post("/v1/embeddings", json={"input": "a", "dimensions": dimensions})
    assert reply.status_code == status


def test_an_empty_signature_name_is_the_default():
    body = {"signature_name": "", "inputs": ["a"]}
    reply = post("/v1/models/m:predict", json=body)
    assert reply.json() == {"outputs": [[2.0, 2.0]]}


@pytest.mark.parametrize(
    "body, message",
    [
        ('{"input": ["a", "b", "c"]}', "at most 2 rows, got 3"),
        ('{"input": "a", "input_type": "x"}', "input_type must be document or query"),
        ('{"input": ' + "[" * 900 + "]" * 900 + "}", ""),
        ('{"input": ' + "[" * 90_000 + "]" * 90_000 + "}", "too many nested lists"),
    ],
)
def test_a_request_for_embeddings_that_cannot_be_answered_is_refused(body, message):
    reply = post("/v1/embeddings", content=body)
    assert reply.status_code == 400
    assert message in reply.json()["error"]["message"]


def test_a_name_that_is_not_unicode_is_refused():
    reply = post("/v1/models/m:predict", content=r'{"inputs": {"\ud800": ["a"]}}')
    assert reply.status_code == 400
    assert r"takes text, got \ud800" in reply.json()["error"]


def test_a_full_queue_does_not_read_the_body():
    async def talk():
        is_computing, may_answer = asyncio.Event(), asyncio.Event()
        parts = []

        async def compute(request):
            is_computing.set()
            await may_answer.wait()
            return await vectors(request)

        async def body():
            parts.append(b"{}")
            yield parts[0]

        asked = client(compute)
        first = asyncio.create_task(asked.post("/v1/embeddings", json={"input": "a"}))
        await is_computing.wait()
        second = await asked.post("/v1/embeddings", content=body())
        may_answer.set()
        return (await first).status_code, second.status_code, parts

    assert asyncio.run(talk()) == (200, 429, [])


def test_a_body_that_does_not_arrive_frees_its_place():
    async def body():
        await asyncio.sleep(60)
        yield b"{}"

    async def talk():
        asked = client()
        first = await asked.post("/v1/embeddings", content=body())
        second = await asked.post("/v1/embeddings", json={"input": "a"})
        return first.status_code, second.status_code

    assert asyncio.run(talk()) == (408, 200)
