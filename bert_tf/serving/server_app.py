"""The paths of the server, as an ASGI application.

Every request passes the same gates: its host and token, a place in the queue, the time
and size of its body, and the limits on its rows and its work.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import importlib.resources
import itertools
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

import orjson
import prometheus_client
from starlette import requests
from starlette import responses
from starlette.exceptions import HTTPException

from bert_tf.serving import server_formats
from bert_tf.serving import server_model
from bert_tf.serving import server_options

MAX_BYTES_IN_PROGRESS = 64 * 2**20
MAX_HEADER_BYTES = 2**16
ARRIVAL_SECONDS = 10.0  # Of headers, and of a body.
_SENDING_SECONDS = 30.0  # Of an answer.
_PROBES = ("/livez", "/readyz")
_JSON = "application/json"
_CHUNK_BYTES = 2**16
# Bytes of outputs and their answer, for each byte of the outputs; at most.
_ANSWER = 5
# Headers of refusals, by status.
_HEADERS = {
    401: {"WWW-Authenticate": 'Bearer, Basic realm="bert_tf"'},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "5"},
}
_CLIENT_IS_GONE = 499  # For the log and the counters, as in nginx.
_REQUESTS = prometheus_client.Counter(
    "bert_tf_requests",
    "Also refused ones.",
    ("signature", "status", "task", "version"),
)
_SECONDS = [
    prometheus_client.Histogram(f"bert_tf_{part}_seconds", help_text, ["signature"])
    for part, help_text in (
        ("request", "Time from request to answer."),
        ("queue", "Time in the queue."),
        ("compute", "Time in the model."),
    )
]
_QUEUED = prometheus_client.Gauge("bert_tf_queued_requests", "Waiting or computed.")
_BYTES = prometheus_client.Gauge("bert_tf_bytes_in_progress", "Requests and answers.")


class _Exchange(requests.Request):
    """A request, and what the server knows about it and its answer."""

    def __init__(self, scope: dict[str, Any], receive: Callable):
        super().__init__(scope, receive)
        self.started = time.perf_counter()
        identity = self.headers.get("x-request-id", "")
        is_usable = re.fullmatch(r"[\w.:/+=-]{1,128}", identity, re.ASCII)
        self.id = identity if is_usable else uuid.uuid4().hex
        self.path = scope["path"]
        self.num_bytes = 0  # In memory: the body, its columns, outputs, or the answer.
        self.job: server_model.Job | None = None

    def refusal(self, error: HTTPException) -> responses.Response:
        """Returns the answer that gives an error, in the form of its API."""
        content: Any = error.detail
        if self.path == "/v1/embeddings":
            is_ours = error.status_code >= 500
            kind = "server_error" if is_ours else "invalid_request_error"
            content = {"message": error.detail, "type": kind}
        headers = error.headers or _HEADERS.get(error.status_code)
        return responses.JSONResponse({"error": content}, error.status_code, headers)

    async def send(self, response: responses.Response, send: Callable) -> None:
        """Sends the answer in parts, so that a slow client takes no memory."""
        response.headers["x-content-type-options"] = "nosniff"
        response.headers["x-request-id"] = self.id
        start = {"status": response.status_code, "headers": response.raw_headers}
        await send({"type": "http.response.start", **start})
        content = response.body
        for begin in range(0, len(content) or 1, _CHUNK_BYTES):
            end = begin + _CHUNK_BYTES
            part = {"body": content[begin:end], "more_body": end < len(content)}
            await send({"type": "http.response.body", **part})


class Application:
    """The paths of one model, whose versions may change.

    Args:
        options: the options of the server.
        name: the name of the model.
        queue: where its requests are computed.
        log: takes the fields of a line of the log.
        token: what requests must have, or None.

    Attributes:
        model: the version that answers; None before the first one is loaded.
    """

    def __init__(
        self,
        options: server_options.ServeModelOptions,
        name: str,
        queue: server_model.Queue,
        *,
        log: Callable[[dict[str, Any]], object],
        token: str | None = None,
    ):
        self.model: server_model.LoadedModel | None = None
        self._options = options
        self._name = name
        self._queue = queue
        self._log = log
        self._token = token
        self._num_bytes = 0
        _QUEUED.set_function(queue.size)
        _BYTES.set_function(lambda: self._num_bytes)
        names = ("localhost", "127.0.0.1", "::1", *options.allowed_host)
        self._hosts = {name.lower() for name in names}
        self._documents: dict[str, Callable[[], responses.Response]] = {
            "/": _page,
            "/livez": lambda: responses.PlainTextResponse("ok"),
            "/readyz": self._ready,
            "/metrics": _metrics,
            "/v1/models": lambda: responses.JSONResponse(server_formats.models(name)),
            f"/v1/models/{name}": self._described(server_formats.status),
            f"/v1/models/{name}/metadata": self._described(server_formats.metadata),
        }
        self._readers: dict[str, Callable[..., server_model.Job]] = {
            f"/v1/models/{name}:predict": server_formats.read_query,
            "/v1/embeddings": server_formats.read_embeddings,
        }

    async def __call__(self, scope: Any, receive: Callable, send: Callable) -> None:
        """Answers a request."""
        exchange = _Exchange(scope, receive)
        limit, status = self._options.queue_timeout_seconds, _CLIENT_IS_GONE
        try:
            try:
                async with asyncio.timeout(limit):
                    response = await self._response(exchange)
            except HTTPException as error:
                response = exchange.refusal(error)
            except TimeoutError:
                message = f"There was no answer within {limit:g} seconds."
                response = exchange.refusal(HTTPException(504, message))
            except requests.ClientDisconnect:
                raise
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"[:300]
                self._log({"error": reason, "id": exchange.id})
                message = f"The server has an error; see {exchange.id} in its log."
                response = exchange.refusal(HTTPException(500, message))
            self._hold(exchange, len(response.body))
            async with asyncio.timeout(min(limit, _SENDING_SECONDS)):
                await exchange.send(response, send)
                status = response.status_code
        except (requests.ClientDisconnect, TimeoutError):
            pass
        finally:
            self._hold(exchange, 0)
            self._record(exchange, status)

    async def _response(self, exchange):
        self._check_access(exchange)
        version = r"\d+" if self.model is None else self.model.version
        versions = rf"^(/v1/models/{self._name})/versions/{version}\b"
        path = re.sub(versions, r"\1", exchange.path)
        message = f"No such path: {exchange.path:.80}; GET /v1/models names the model."
        _require(path in self._readers or path in self._documents, 404, message)
        allowed = "POST" if path in self._readers else "GET, HEAD"
        if exchange.method not in allowed.split(", "):
            raise HTTPException(405, f"Expected {allowed}.", {"Allow": allowed})
        if path in self._documents:
            return self._documents[path]()
        return await self._compute(self._readers[path], exchange)

    def _check_access(self, exchange):
        # h11 accepts longer headers that arrive at once.
        num_bytes = len(b"".join(itertools.chain(*exchange.headers.raw)))
        _require(num_bytes <= MAX_HEADER_BYTES, 400, "Expected headers below 64 KiB.")
        host = exchange.headers.get("host", "localhost").lower()
        host = re.sub(r":\d*$", "", host).strip("[]")
        address = (exchange.scope.get("server") or ("",))[0].removeprefix("::ffff:")
        message = f"{host:.80} is not this server; --allowed_host accepts names."
        _require(host == address or host in self._hosts, 403, message)
        if self._token is not None and exchange.path not in _PROBES:
            kind, _, secret = exchange.headers.get("authorization", "").partition(" ")
            secret = secret.encode("latin-1")
            if kind.lower() == "basic":  # Browsers ask for a name and a password.
                with contextlib.suppress(ValueError):
                    secret = base64.b64decode(secret).partition(b":")[2]
            is_right = hmac.compare_digest(secret, self._token.encode())
            message = "Expected a token, as in 'Authorization: Bearer TOKEN'."
            _require(is_right, 401, message)
        if exchange.method == "POST" and "origin" in exchange.headers:
            # Without asking us first, a page of another site can send some other types.
            kind = exchange.headers.get("content-type", "").partition(";")[0].strip()
            _require(kind == _JSON, 415, f"Expected {_JSON} from a web page.")

    def _loaded(self):
        _require(self.model is not None, 503, "The model is being loaded.")
        return self.model

    def _ready(self):
        self._loaded()
        is_full = self._queue.size() >= self._options.max_queue_size
        _require(not is_full, 503, "The queue is full.")
        is_stuck = self._queue.busy_seconds() > self._options.queue_timeout_seconds
        _require(not is_stuck, 503, "The model does not answer.")
        return responses.PlainTextResponse("ok")

    def _described(self, describe):
        return lambda: responses.JSONResponse(describe(self._name, self._loaded()))

    async def _compute(self, read, exchange):
        """Returns the answer to a request to the model; its JSON is a thread's work."""
        model = self._loaded()
        self._queue.check_room()
        body = await self._body(exchange)
        job = exchange.job = await asyncio.to_thread(self._job, read, body, model)
        self._hold(exchange, server_model.num_bytes(job.inputs))
        try:
            outputs = await self._outputs(exchange, job)
        finally:  # The log needs the job.
            job.inputs.clear()
        self._reserve(exchange, _ANSWER * server_model.num_bytes(outputs))
        content = await asyncio.to_thread(job.encode, outputs)
        return responses.Response(content, media_type=_JSON)

    def _hold(self, exchange, num_bytes):
        self._num_bytes += num_bytes - exchange.num_bytes
        exchange.num_bytes = num_bytes

    def _reserve(self, exchange, num_bytes):
        """Counts what a request takes; raises HTTPException if there is no room."""
        self._hold(exchange, num_bytes)
        message = "It takes too much memory; send several requests."
        _require(num_bytes <= MAX_BYTES_IN_PROGRESS, 400, message)
        message = "Too many bytes are in progress; try again later."
        _require(self._num_bytes <= MAX_BYTES_IN_PROGRESS, 429, message)

    async def _body(self, exchange):
        """Returns the body, within the limits of time and size."""
        most = self._options.max_body_mb
        body = bytearray()
        try:
            async with asyncio.timeout(ARRIVAL_SECONDS):
                async for part in exchange.stream():
                    body += part
                    self._reserve(exchange, len(body))
                    message = f"Expected a body of at most {most} MiB."
                    _require(len(body) <= most * 2**20, 413, message)
        except TimeoutError:
            message = f"The body did not arrive within {ARRIVAL_SECONDS:g} seconds."
            raise HTTPException(408, message) from None
        return body

    def _job(self, read, body, model):
        """Returns the job of a body, which is dropped."""
        try:
            content = orjson.loads(body)
            body.clear()
            if not isinstance(content, dict):
                raise ValueError("The body must be a JSON object.")
            job = read(content, model, self._name)
            server_formats.check(job, self._options)
        except orjson.JSONDecodeError as error:
            message = f"The body is not JSON: {error}."
            raise HTTPException(400, message) from None
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        return job

    async def _outputs(self, exchange, job):
        """Returns the outputs of a job, unless its client disconnects."""
        answer = asyncio.ensure_future(self._queue.compute(job))
        gone = asyncio.ensure_future(exchange.receive())
        try:
            await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise requests.ClientDisconnect
            return answer.result()
        finally:
            gone.cancel()
            answer.cancel()

    def _record(self, exchange, status):
        """Counts and logs a request."""
        job, seconds = exchange.job, time.perf_counter() - exchange.started
        line = {"method": exchange.method, "path": exchange.path[:200]}
        line |= {"status": status, "ms": round(1000 * seconds, 1), "id": exchange.id}
        signature, model = "", self.model
        if job is not None:
            signature, model = job.signature, job.model
            line |= {"version": model.version, "rows": len(job.positions)}
            line["queue_ms"] = round(1000 * job.queue_seconds, 1)
            line["compute_ms"] = round(1000 * job.compute_seconds, 1)
            if status < 400:
                times = (seconds, job.queue_seconds, job.compute_seconds)
                for histogram, value in zip(_SECONDS, times, strict=True):
                    histogram.labels(signature).observe(value)
        labels = ("", "")
        if model is not None:
            labels = (model.task.get("task", ""), str(model.version))
        _REQUESTS.labels(signature, status, *labels).inc()
        if exchange.path not in (*_PROBES, "/metrics"):
            self._log(line)


def _require(is_met, status, message):
    if not is_met:
        raise HTTPException(status, message)


def _metrics():
    content = prometheus_client.generate_latest()
    return responses.Response(content, media_type=prometheus_client.CONTENT_TYPE_LATEST)


def _page():
    folder = importlib.resources.files("bert_tf.serving")
    page = folder.joinpath("server_page.html").read_text("utf-8")
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    headers = {"Content-Security-Policy": policy, "X-Frame-Options": "DENY"}
    return responses.HTMLResponse(page, headers=headers)
