"""The paths of the server, as an ASGI application.

Every request passes the same gates: its host and token, a place in the queue, the time
and size of its body, and the limits on its rows and its work.
"""

import asyncio
import concurrent.futures
import functools
import hmac
import importlib.resources
import json
import re
import secrets
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import orjson
import prometheus_client
from starlette import requests
from starlette import responses
from starlette.exceptions import HTTPException

from bert_tf.serving import options as serving_options
from bert_tf.serving import server_formats
from bert_tf.serving import server_model

MAX_REQUESTS = 256  # That wait or are computed.
MAX_POSITIONS_OF_ROW = 2**14  # A row cannot be divided, and delays other requests.
MAX_BYTES_IN_PROGRESS = 64 * 2**20
MAX_HEADER_BYTES = 2**16
ARRIVAL_SECONDS = 10.0  # Of headers, and of a body.
_PROBES = ("/livez", "/readyz")
_MODEL = r"/v1/models/(?P<name>[^/:]+)(/versions/(?P<version>[^/:]+))?"
_READ, _POST = ("GET", "HEAD"), ("POST",)
_JSON = "application/json"
_CHUNK_BYTES = 2**16
# Bytes of outputs and their answer, for each byte of the outputs; at most.
_ANSWER = 5
# Headers of refusals, by status.
_HEADERS = {
    401: {"WWW-Authenticate": "Bearer"},
    429: {"Retry-After": "1"},
    503: {"Retry-After": "5"},
}
_CLIENT_IS_GONE = 499  # For the log and the counters, as in nginx.
_REQUESTS = prometheus_client.Counter(
    "bert_tf_requests",
    "Also refused ones.",
    ("signature", "status", "task", "version"),
)
_SECONDS = prometheus_client.Histogram(
    "bert_tf_seconds", "Time in the queue, in the model, in all.", ("part", "signature")
)
_QUEUED = prometheus_client.Gauge("bert_tf_queued_requests", "Waiting or computed.")
_BYTES = prometheus_client.Gauge("bert_tf_bytes_in_progress", "Requests and answers.")


class Application:
    """The paths of one model, whose versions may change.

    Attributes:
        model: the version that answers; None before the first one is loaded.
        queue: where requests are computed.
    """

    def __init__(
        self, options: serving_options.ServeModelOptions, token: str | None = None
    ):
        self.model: server_model.ServedModel | None = None
        self.queue = server_model.Queue()
        self._options = options
        self._token = token
        self._num_bytes = self._num_jobs = 0
        # JSON takes many times the memory of its bytes: one body at a time.
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        _QUEUED.set_function(lambda: self._num_jobs)
        _BYTES.set_function(lambda: self._num_bytes)
        self._hosts = {"localhost", "127.0.0.1", *map(str.lower, options.allowed_host)}
        status = functools.partial(self._described, server_formats.status)
        metadata = functools.partial(self._described, server_formats.metadata)
        predict = functools.partial(self._answer, server_formats.read_query)
        embeddings = functools.partial(self._answer, server_formats.read_embeddings)
        self._routes = (
            ("/", _READ, self._page),
            ("/livez", _READ, _live),
            ("/readyz", _READ, self._ready),
            ("/metrics", _READ, _metrics),
            (_MODEL, _READ, status),
            (f"{_MODEL}/metadata", _READ, metadata),
            (f"{_MODEL}:predict", _POST, predict),
            ("/v1/embeddings", _POST, embeddings),
        )

    async def __call__(self, scope: Any, receive: Callable, send: Callable) -> None:
        """Answers a request; errors in TensorFlow Serving's form."""
        started = time.perf_counter()
        scope["path"] = scope["path"].rstrip("/") or "/"
        request = requests.Request(scope, receive)
        identity = request.headers.get("x-request-id", "")
        is_usable = re.fullmatch(r"[\w.:/+=-]{1,128}", identity, re.ASCII)
        scope["state"] = {
            "log_line": {
                "method": request.method,
                "path": scope["path"][:200],
                "status": _CLIENT_IS_GONE,
                "id": identity if is_usable else uuid.uuid4().hex,
                "version": self.model.version if self.model else "",
                "rows": 0,
            },
            "task": self.model.task.get("task", "") if self.model else "",
            "signature": "",
            "seconds": {},
            # In memory: the body, its columns, outputs, or the answer.
            "num_bytes": 0,
        }
        state = request.state
        try:
            response = await self._response(request)
            response.headers["x-content-type-options"] = "nosniff"
            response.headers["x-request-id"] = state.log_line["id"]
            # A client that reads too slowly loses its connection.
            async with asyncio.timeout(self._options.queue_timeout_seconds):
                await _send(response, request, send)
            state.log_line["status"] = response.status_code
        except requests.ClientDisconnect:
            pass
        finally:
            self._hold(state, 0)
            state.seconds["request"] = time.perf_counter() - started
            self._record(state)

    async def _response(self, request):
        try:
            async with asyncio.timeout(self._options.queue_timeout_seconds):
                self._check_access(request)
                return await self._endpoint(request)(request)
        except requests.ClientDisconnect:
            raise
        except Exception as error:
            return self._refusal(error, request.state.log_line["id"])

    def _endpoint(self, request):
        path = request.scope["path"]
        for pattern, methods, endpoint in self._routes:
            if match := re.fullmatch(pattern, path):
                if request.method not in methods:
                    headers = {"Allow": ", ".join(methods)}
                    raise HTTPException(405, f"Expected {methods[0]}.", headers)
                request.scope["path_params"] = match.groupdict()
                return endpoint
        raise HTTPException(404, f"No such path: {path:.80}.")

    def _refusal(self, error, identity):
        if isinstance(error, TimeoutError):
            seconds = self._options.queue_timeout_seconds
            error = HTTPException(504, f"There was no answer within {seconds:g} s.")
        elif not isinstance(error, HTTPException):
            reason = f"{type(error).__name__}: {error}"[:300]
            self.log({"error": reason, "id": identity})
            message = f"The server has an error; see {identity} in its log."
            if isinstance(error, OSError):  # The model cannot answer.
                message = str(error)[:400]
            error = HTTPException(500, message)
        status = error.status_code
        headers = error.headers or _HEADERS.get(status)
        return responses.JSONResponse({"error": error.detail}, status, headers)

    def _check_access(self, request):
        # h11 accepts longer headers that arrive at once.
        num_bytes = sum(len(name) + len(value) for name, value in request.headers.raw)
        _require(num_bytes <= MAX_HEADER_BYTES, 400, "Expected headers below 64 KiB.")
        host = request.headers.get("host", "localhost").lower().partition(":")[0]
        address = (request.scope.get("server") or ("",))[0]
        message = f"{host:.80} is not this server; --allowed_host accepts names."
        _require(host in (address, *self._hosts), 403, message)
        if self._token is not None and request.scope["path"] not in _PROBES:
            kind, _, secret = request.headers.get("authorization", "").partition(" ")
            sent = f"{kind.lower()} {secret}".encode("latin-1")
            is_right = hmac.compare_digest(sent, f"bearer {self._token}".encode())
            message = "Expected a token, as in 'Authorization: Bearer TOKEN'."
            _require(is_right, 401, message)
        if request.method == "POST" and "origin" in request.headers:
            # Without asking us first, a page of another site can send some other types.
            kind = request.headers.get("content-type", "").partition(";")[0].strip()
            _require(kind == _JSON, 415, f"Expected {_JSON} from a web page.")

    def _loaded(self, request):
        if self.model is None:
            raise HTTPException(503, "The model is being loaded.")
        served = {"name": self.model.name, "version": str(self.model.version)}
        message = "Expected model {name}, version {version}.".format(**served)
        asked = {name: value for name, value in request.path_params.items() if value}
        _require(asked.items() <= served.items(), 404, message)
        return self.model

    def _check_room(self, status):
        message = f"The queue is full ({MAX_REQUESTS} requests); try again later."
        _require(self._num_jobs < MAX_REQUESTS, status, message)

    async def _ready(self, request):
        self._loaded(request)
        self._check_room(503)
        is_stuck = self.queue.busy_seconds() > self._options.queue_timeout_seconds
        _require(not is_stuck, 503, "The model does not answer.")
        return responses.PlainTextResponse("ok")

    async def _described(self, describe, request):
        return responses.JSONResponse(describe(self._loaded(request)))

    async def _answer(self, read, request):
        """Returns the answer to a request to the model; its JSON is a thread's work."""
        model, state = self._loaded(request), request.state
        run_in_thread = asyncio.get_running_loop().run_in_executor
        self._check_room(429)
        body = await self._body(request)
        try:
            job = await run_in_thread(self._thread, self._job, read, body, model)
            state.signature = job.signature.name
            state.log_line["rows"] = len(job.positions)
            self._hold(state, server_model.num_bytes(job.inputs))
            parts = await self._outputs(request, job)
        except orjson.JSONDecodeError as error:
            raise HTTPException(400, f"The body is not JSON: {error}.") from None
        except ValueError as error:
            raise HTTPException(400, str(error)[:400]) from None
        job.inputs.clear()
        self._hold(state, _ANSWER * job.num_answer_bytes(parts))
        content = await run_in_thread(self._thread, job.encode, parts)
        self._hold(state, len(content))
        return responses.Response(content, media_type=_JSON)

    def _hold(self, state, num_bytes):
        """Counts what a request takes; raises HTTPException if there is no room."""
        is_more = num_bytes > state.num_bytes
        self._num_bytes += num_bytes - state.num_bytes
        state.num_bytes = num_bytes
        if is_more:
            message = "It takes too much memory; send several requests."
            _require(num_bytes <= MAX_BYTES_IN_PROGRESS, 400, message)
            message = "Too many bytes are in progress; try again later."
            _require(self._num_bytes <= MAX_BYTES_IN_PROGRESS, 429, message)

    async def _body(self, request):
        """Returns the body, within the limits of time and size."""
        most = self._options.max_body_mb
        body = bytearray()
        try:
            async with asyncio.timeout(ARRIVAL_SECONDS):
                async for part in request.stream():
                    body += part
                    self._hold(request.state, len(body))
                    message = f"Expected a body of at most {most} MiB."
                    _require(len(body) <= most * 2**20, 413, message)
        except TimeoutError:
            message = f"The body did not arrive within {ARRIVAL_SECONDS:g} seconds."
            raise HTTPException(408, message) from None
        return body

    def _job(self, read, body, model):
        """Returns the job of a body, which is dropped."""
        content = orjson.loads(body)
        body.clear()
        if not isinstance(content, dict):
            raise ValueError("The body must be a JSON object.")
        job = read(content, model)
        count, most = len(job.positions), server_formats.MAX_ROWS
        message = f"Expected at most {most} rows, got {count}; send several requests."
        _require(count <= most, 400, message)
        total, most = job.positions.sum(), self._options.max_positions
        message = (
            f"Expected at most {most} word pieces in all rows and windows, got about "
            f"{total}; send several requests, or shorter texts."
        )
        _require(total <= most, 400, message)
        longest, most = job.positions.max(initial=0), MAX_POSITIONS_OF_ROW
        message = (
            f"Expected at most {most} word pieces in a text and its windows, got about "
            f"{longest}; divide the text."
        )
        _require(longest <= most, 400, message)
        return job

    async def _outputs(self, request, job):
        """Returns the outputs of a job, unless its client disconnects."""
        self._check_room(429)
        self._num_jobs += 1
        started = time.monotonic()
        outputs = asyncio.ensure_future(job.outputs(self.queue))
        gone = asyncio.ensure_future(request.receive())
        try:
            await asyncio.wait([outputs, gone], return_when=asyncio.FIRST_COMPLETED)
            if not outputs.done():
                raise requests.ClientDisconnect
            return outputs.result()
        finally:
            gone.cancel()
            outputs.cancel()
            self._num_jobs -= 1
            now = time.monotonic()
            computed = job.seconds + now - (job.called_at or now)
            waited = now - started - computed
            request.state.seconds = {"queue": waited, "compute": computed}

    def log(self, fields: dict[str, Any]) -> None:
        """Writes a line of the log."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **fields}
        text = json.dumps(line)
        if self._options.log_format == "text":
            text = " ".join(f"{name}={json.dumps(line[name])}" for name in line)
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def _record(self, state):
        """Counts and logs a request."""
        status, version = state.log_line["status"], state.log_line["version"]
        _REQUESTS.labels(state.signature, status, state.task, version).inc()
        if status < 400 and state.signature:
            for part, seconds in state.seconds.items():
                _SECONDS.labels(part, state.signature).observe(seconds)
        if state.log_line["path"] not in (*_PROBES, "/metrics"):
            times = {f"{k}_ms": round(1000 * v, 1) for k, v in state.seconds.items()}
            self.log(state.log_line | times)

    async def _page(self, request):
        folder = importlib.resources.files("bert_tf.serving")
        page = folder.joinpath("server_page.html").read_text("utf-8")
        page = page.replace("NAME", self._loaded(request).name, 1)
        nonce = secrets.token_urlsafe()
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; "
            "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "X-Frame-Options": "DENY"}
        return responses.HTMLResponse(page.replace("NONCE", nonce), headers=headers)


def _require(is_met, status, message):
    if not is_met:
        raise HTTPException(status, message)


async def _send(response, request, send):
    """Sends an answer in parts, so that a slow client takes no memory."""
    start = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "http.response.start", **start})
    # An empty body needs one message, too.
    for begin in range(0, len(response.body) or 1, _CHUNK_BYTES):
        if await request.is_disconnected():
            raise requests.ClientDisconnect
        end = begin + _CHUNK_BYTES
        part = {"body": response.body[begin:end], "more_body": end < len(response.body)}
        await send({"type": "http.response.body", **part})


async def _live(request):
    return responses.PlainTextResponse("ok")


async def _metrics(request):
    content = prometheus_client.generate_latest()
    return responses.Response(content, media_type=prometheus_client.CONTENT_TYPE_LATEST)
