"""The paths of the server, as an ASGI application.

Every request passes the same gates: its host and token, a place in the queue, the time
and size of its body, and the limits on its rows and its work.
"""

import asyncio
import base64
import contextlib
import functools
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
from starlette import exceptions
from starlette import requests
from starlette import responses
from starlette import routing

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
        self.num_bytes = 0  # In memory: the body, its columns, outputs, or the answer.
        self.job: server_model.Job | None = None

    def refusal(self, error: exceptions.HTTPException) -> responses.Response:
        """Returns the answer that gives an error, in the form of its API."""
        content: Any = {"error": error.detail}
        if self.scope["path"] == "/v1/embeddings":
            is_ours = error.status_code >= 500
            kind = "server_error" if is_ours else "invalid_request_error"
            content = {"error": {"message": error.detail, "type": kind}}
        return responses.JSONResponse(content, error.status_code, error.headers)

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
        models = server_formats.models(name)
        predict = functools.partial(self._compute, server_formats.read_query)
        embed = functools.partial(self._compute, server_formats.read_embeddings)
        self._routes = [
            routing.Route("/", _page),
            routing.Route("/livez", lambda _: responses.PlainTextResponse("ok")),
            routing.Route("/readyz", self._ready),
            routing.Route("/metrics", _metrics),
            routing.Route("/v1/models", lambda _: responses.JSONResponse(models)),
            routing.Route("/v1/embeddings", embed, methods=["POST"]),
        ]
        status = functools.partial(self._describe, server_formats.status)
        metadata = functools.partial(self._describe, server_formats.metadata)
        for path in (f"/v1/models/{name}", f"/v1/models/{name}/versions/{{version}}"):
            self._routes += [
                routing.Route(f"{path}:predict", predict, methods=["POST"]),
                routing.Route(f"{path}/metadata", metadata),
                routing.Route(path, status),
            ]

    async def __call__(self, scope: Any, receive: Callable, send: Callable) -> None:
        """Answers a request."""
        exchange = _Exchange(scope, receive)
        limit, status = self._options.queue_timeout_seconds, _CLIENT_IS_GONE
        try:
            try:
                async with asyncio.timeout(limit):
                    response = await self._response(exchange)
            except exceptions.HTTPException as error:
                response = exchange.refusal(error)
            except TimeoutError:
                message = f"There was no answer within {limit:g} seconds."
                response = exchange.refusal(exceptions.HTTPException(504, message))
            except requests.ClientDisconnect:
                raise
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"[:300]
                self._log({"error": reason, "id": exchange.id})
                message = f"The server has an error; see {exchange.id} in its log."
                response = exchange.refusal(exceptions.HTTPException(500, message))
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
        for route in self._routes:
            match, found = route.matches(exchange.scope)
            if match is routing.Match.PARTIAL:
                allowed = ", ".join(sorted(route.methods or ()))
                message = f"Expected {allowed}, got {exchange.method:.20}."
                raise exceptions.HTTPException(405, message, {"Allow": allowed})
            if match is routing.Match.FULL:
                exchange.scope.update(found)
                response = route.endpoint(exchange)
                return await response if asyncio.iscoroutine(response) else response
        raise _unknown_path(exchange)

    def _check_access(self, exchange):
        # h11 accepts longer headers that arrive at once.
        if len(b"".join(itertools.chain(*exchange.headers.raw))) > MAX_HEADER_BYTES:
            raise exceptions.HTTPException(400, "Expected headers of at most 64 KiB.")
        host = exchange.headers.get("host", "localhost").lower()
        host = re.sub(r":\d*$", "", host).strip("[]")
        address = (exchange.scope.get("server") or ("",))[0].removeprefix("::ffff:")
        if host != address and host not in self._hosts:
            message = f"{host:.80} is not this server; --allowed_host accepts names."
            raise exceptions.HTTPException(403, message)
        if self._token is not None and exchange.scope["path"] not in _PROBES:
            kind, _, secret = exchange.headers.get("authorization", "").partition(" ")
            secret = secret.encode("latin-1")
            if kind.lower() == "basic":  # Browsers ask for a name and a password.
                with contextlib.suppress(ValueError):
                    secret = base64.b64decode(secret).partition(b":")[2]
            if not hmac.compare_digest(secret, self._token.encode()):
                message = "Expected a token, as in 'Authorization: Bearer TOKEN'."
                challenge = {"WWW-Authenticate": 'Bearer, Basic realm="bert_tf"'}
                raise exceptions.HTTPException(401, message, challenge)
        kind = exchange.headers.get("content-type", "").partition(";")[0].strip()
        # Without asking us first, a page of another site can send some other types.
        if exchange.method == "POST" and "origin" in exchange.headers and kind != _JSON:
            raise exceptions.HTTPException(415, f"Expected {_JSON} from a web page.")

    def _loaded(self, exchange):
        if self.model is None:
            message, wait = "The model is being loaded.", {"Retry-After": "5"}
            raise exceptions.HTTPException(503, message, wait)
        version = str(self.model.version)
        if exchange.path_params.get("version", version) != version:
            raise _unknown_path(exchange)
        return self.model

    def _ready(self, exchange):
        self._loaded(exchange)
        if self._queue.size() >= self._options.max_queue_size:
            raise exceptions.HTTPException(503, "The queue is full.")
        if self._queue.busy_seconds() > self._options.queue_timeout_seconds:
            raise exceptions.HTTPException(503, "The model does not answer.")
        return responses.PlainTextResponse("ok")

    def _describe(self, describe, exchange):
        content = describe(self._name, self._loaded(exchange))
        return responses.JSONResponse(content)

    async def _compute(self, read, exchange):
        """Returns the answer to a request to the model; its JSON is a thread's work."""
        model = self._loaded(exchange)
        self._queue.check_room()
        body = await self._body(exchange)
        job = await asyncio.to_thread(self._read, read, body, model)
        exchange.job = job
        self._hold(exchange, server_model.num_bytes(job.inputs))
        outputs = {}
        try:
            outputs = await self._outputs(exchange, job)
            self._reserve(exchange, _ANSWER * server_model.num_bytes(outputs))
            content = await asyncio.to_thread(job.encode, outputs)
            return responses.Response(content, media_type=_JSON)
        finally:  # The job is needed for the log.
            job.inputs.clear()
            outputs.clear()

    def _hold(self, exchange, num_bytes):
        self._num_bytes += num_bytes - exchange.num_bytes
        exchange.num_bytes = num_bytes

    def _reserve(self, exchange, num_bytes):
        """Counts what a request takes; raises HTTPException if there is no room."""
        self._hold(exchange, num_bytes)
        if num_bytes > MAX_BYTES_IN_PROGRESS:
            message = "It takes too much memory; send several requests."
            raise exceptions.HTTPException(400, message)
        if self._num_bytes > MAX_BYTES_IN_PROGRESS:
            message = "Too many bytes are in progress; try again later."
            raise exceptions.HTTPException(429, message, {"Retry-After": "1"})

    async def _body(self, exchange):
        """Returns the body, within the limits of time and size."""
        limit = self._options.max_body_mb * 2**20
        body = bytearray()
        try:
            async with asyncio.timeout(ARRIVAL_SECONDS):
                if int(exchange.headers.get("content-length", 0)) <= limit:
                    async for part in exchange.stream():
                        body += part
                        self._reserve(exchange, len(body))
                        if len(body) > limit:
                            break
                    else:
                        return body
        except TimeoutError:
            message = f"The body did not arrive within {ARRIVAL_SECONDS:g} seconds."
            raise exceptions.HTTPException(408, message) from None
        message = f"Expected a body of at most {self._options.max_body_mb} MiB."
        raise exceptions.HTTPException(413, message)

    def _read(self, read, body, model):
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
            raise exceptions.HTTPException(400, message) from None
        except ValueError as error:
            raise exceptions.HTTPException(400, str(error)) from None
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
        line = {"method": exchange.method, "path": exchange.scope["path"][:200]}
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
        if exchange.scope["path"] not in (*_PROBES, "/metrics"):
            self._log(line)


def _unknown_path(exchange):
    path = exchange.scope["path"]
    message = f"No such path: {path:.80}; GET /v1/models names the model."
    return exceptions.HTTPException(404, message)


def _metrics(exchange):
    content = prometheus_client.generate_latest()
    return responses.Response(content, media_type=prometheus_client.CONTENT_TYPE_LATEST)


def _page(exchange):
    folder = importlib.resources.files("bert_tf.serving")
    page = folder.joinpath("server_page.html").read_text("utf-8")
    hashes = {
        kind: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for kind, text in re.findall(r"<(style|script)>(.*?)</", page, re.DOTALL)
    }
    rules = [f"{kind}-src 'sha256-{digest}'" for kind, digest in hashes.items()]
    policy = ["default-src 'none'", "connect-src 'self'", "form-action 'none'"]
    policy += ["base-uri 'none'", "frame-ancestors 'none'", *rules]
    headers = {"Content-Security-Policy": "; ".join(policy), "X-Frame-Options": "DENY"}
    return responses.HTMLResponse(page, headers=headers)
