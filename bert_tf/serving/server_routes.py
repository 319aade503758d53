"""The server's paths: what each request gets, before and after the model.

| path | answer |
|---|---|
| GET / | a page to try the model |
| GET /v1/models | the models, as OpenAI lists them |
| GET /v1/models/NAME[/versions/N] | status |
| GET /v1/models/NAME[/versions/N]/metadata | signatures |
| POST /v1/models/NAME[/versions/N]:predict | outputs of the model |
| POST /v1/embeddings | vectors, as OpenAI returns them |
| GET /metrics | counters for Prometheus |
"""

import asyncio
import importlib.resources
import json
import time
from collections.abc import Awaitable
from collections.abc import Callable
from typing import Any

from bert_tf.serving import client
from bert_tf.serving import saved_signatures
from bert_tf.serving import server_limits
from bert_tf.serving import server_replies

EMBEDDING = "embedding"
_TOO_DEEP = "The body has too many nested lists or objects"


class Routes:
    """The paths of one model.

    Args:
        name: the model's name.
        version: its version.
        signatures: its signatures by name.
        max_queue_size: maximum number of requests that are being read, waiting or
            being computed; further ones are refused with status 429.
        body_timeout_seconds: how long a body may take to arrive.
        limits: what a request may ask for.
        compute: takes a request of `server_model.LoadedModel.answers` and returns its
            answer.
    """

    def __init__(
        self,
        *,
        name: str,
        version: int,
        signatures: dict[str, saved_signatures.Signature],
        max_queue_size: int,
        body_timeout_seconds: float,
        limits: server_limits.ServerLimits,
        compute: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]],
    ):
        self._name = name
        self._signatures = signatures
        self._max_queue_size = max_queue_size
        self._body_timeout_seconds = body_timeout_seconds
        self._limits = limits
        self._compute = compute
        self._num_waiting = 0
        self._status = server_replies.status(version)
        self._metadata = server_replies.metadata(name, version, signatures)
        self._version = version
        self._metrics = _Metrics(lambda: self._num_waiting)

    def all(self) -> list[Any]:
        """Returns Starlette's routes."""
        from starlette import responses
        from starlette import routing

        def reply(content):
            async def endpoint(request):
                return _json(content)

            return endpoint

        async def page(request):
            return responses.HTMLResponse(_page())

        async def metrics(request):
            return responses.Response(*self._metrics.text())

        predict, embed = self._queued(self._predict), self._queued(self._embed)
        models = [{"id": self._name, "object": "model", "owned_by": "bert_tf"}]
        routes = [
            routing.Route("/", page),
            routing.Route("/metrics", metrics),
            routing.Route("/v1/models", reply({"object": "list", "data": models})),
            routing.Route("/v1/embeddings", embed, methods=["POST"]),
        ]
        base = f"/v1/models/{self._name}"
        for path in (base, f"{base}/versions/{self._version}"):
            routes += [
                routing.Route(path, reply(self._status)),
                routing.Route(f"{path}/metadata", reply(self._metadata)),
                routing.Route(f"{path}:predict", predict, methods=["POST"]),
            ]
        return routes

    def _queued(self, answer):
        """Returns an endpoint that bounds the requests whose bodies are in memory."""

        async def endpoint(request):
            if self._num_waiting >= self._max_queue_size:
                # No signature: the body has not been read.
                self._metrics.count("", 429)
                raise _error(
                    429,
                    f"The queue is full ({self._max_queue_size} requests); try again "
                    "later",
                    headers={"Retry-After": "1"},
                )
            self._num_waiting += 1
            try:
                return await answer(request, await self._body(request))
            finally:
                self._num_waiting -= 1

        return endpoint

    async def _body(self, request):
        seconds = self._body_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                content = await request.body()
        except TimeoutError as error:
            raise _error(
                408, f"The body did not arrive within {seconds:g} seconds"
            ) from error
        try:
            body = json.loads(content)
        except RecursionError as error:
            raise _error(400, _TOO_DEEP) from error
        except ValueError as error:
            raise _error(400, f"The body is not JSON: {error}") from error
        if not isinstance(body, dict):
            raise _error(400, "The body must be a JSON object")
        return body

    async def _predict(self, request, body):
        name = body.get("signature_name", "")
        if name == "":  # As in TensorFlow Serving.
            name = client.DEFAULT_SIGNATURE
        signature = self._signatures.get(name) if isinstance(name, str) else None
        if signature is None:
            known = ", ".join(sorted(self._signatures))
            raise _error(400, f"Unknown signature {name!r}; expected one of {known}")
        try:
            inputs = server_replies.columns_of(body, signature)
            self._limits.check(signature, inputs)
        except RecursionError as error:
            raise _error(400, _TOO_DEEP) from error
        except ValueError as error:
            raise _error(400, error) from error
        outputs = await self._outputs(signature.name, inputs)
        return _json(server_replies.prediction(body, outputs))

    async def _embed(self, request, body):
        try:
            texts = server_replies.texts_to_embed(body, self._name)
            signature = self._signatures.get(server_replies.signature_to_embed(body))
            if signature is None or EMBEDDING not in signature.definition.outputs:
                raise ValueError(f"The model {self._name} returns no embeddings.")
            shape = signature.definition.outputs[EMBEDDING].tensor_shape
            server_replies.check_dimensions(body, shape.dim[-1].size)
            inputs = signature.arrays(texts)
            self._limits.check(signature, inputs)
        except LookupError as error:
            raise _error(404, error.args[0]) from error
        except RecursionError as error:
            raise _error(400, _TOO_DEEP) from error
        except ValueError as error:
            raise _error(400, error) from error
        outputs = await self._outputs(signature.name, inputs)
        return _json(server_replies.embeddings(body, outputs[EMBEDDING], self._name))

    async def _outputs(self, signature, inputs):
        from starlette import exceptions

        started = time.perf_counter()
        try:
            answer = await self._compute({"signature": signature, "inputs": inputs})
        except exceptions.HTTPException as error:
            self._metrics.count(signature, error.status_code)
            raise
        if "error" in answer:
            code = 400 if answer["is_invalid"] else 500
            self._metrics.count(signature, code)
            raise _error(code, answer["error"])
        self._metrics.count(signature, 200)
        self._metrics.observe(signature, time.perf_counter() - started, answer["rows"])
        return answer["outputs"]


class _Metrics:
    """Counters for Prometheus."""

    def __init__(self, num_waiting: Callable[[], int]):
        import prometheus_client

        self._registry = prometheus_client.CollectorRegistry()
        self._requests = prometheus_client.Counter(
            "bert_tf_requests",
            "Requests that reached the queue.",
            ["signature", "status"],
            registry=self._registry,
        )
        self._seconds = prometheus_client.Histogram(
            "bert_tf_request_seconds",
            "Time from the queue to the answer.",
            ["signature"],
            registry=self._registry,
        )
        self._rows = prometheus_client.Histogram(
            "bert_tf_batch_rows",
            "Rows that were computed together with the request.",
            buckets=[1, 2, 4, 8, 16, 32, 64, 128, 256],
            registry=self._registry,
        )
        prometheus_client.Gauge(
            "bert_tf_queued_requests",
            "Requests that are being read, wait or are being computed.",
            registry=self._registry,
        ).set_function(num_waiting)

    def count(self, signature: str, status: int) -> None:
        self._requests.labels(signature, str(status)).inc()

    def observe(self, signature: str, seconds: float, num_rows: int) -> None:
        self._seconds.labels(signature).observe(seconds)
        self._rows.observe(num_rows)

    def text(self) -> tuple[bytes, int, None, str]:
        """Returns content, status, headers and media type."""
        import prometheus_client

        content = prometheus_client.generate_latest(self._registry)
        return content, 200, None, prometheus_client.CONTENT_TYPE_LATEST


def _page():
    folder = importlib.resources.files("bert_tf.serving")
    return folder.joinpath("server_page.html").read_text("utf-8")


def _json(reply):
    from starlette import responses

    content = server_replies.encoded(reply)
    return responses.Response(content, media_type="application/json")


def _error(status, message, headers=None):
    from starlette import exceptions

    text = str(message).rstrip(".") + "."
    # A name in the request may be no Unicode, as JSON can hold "\ud800".
    text = text.encode(errors="backslashreplace").decode()
    return exceptions.HTTPException(status, text, headers)


async def error_reply(request: Any, error: Any) -> Any:
    """Returns the reply to a failed request, in the form of its API."""
    from starlette import responses

    detail = error.detail
    if detail == "Not Found":  # Starlette's, for paths without a route.
        path = request.url.path
        detail = f"No such path: {path:.80}; GET /v1/models names the model."
    content: Any = {"error": detail}
    if request.url.path == "/v1/embeddings":
        kind = "invalid_request_error" if error.status_code < 500 else "server_error"
        content = {"error": {"message": detail, "type": kind}}
    return responses.JSONResponse(content, error.status_code, error.headers)
