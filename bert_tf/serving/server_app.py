"""The paths of the server, as an ASGI application.

Every request passes the same gates: its host and token, a place in the queue, the time
and size of its body, and the limits on its rows and its work.
"""

import asyncio
import base64
import concurrent.futures
import contextlib
import functools
import hashlib
import hmac
import importlib.resources
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
_PROBES = ("/livez", "/readyz")
_JSON = "application/json"
_CHUNK_BYTES = 2**16
# That read and write JSON, which takes many times the memory of its bytes.
_NUM_THREADS = 2
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
_SECONDS = {
    part: prometheus_client.Histogram(f"bert_tf_{part}_seconds", text, ["signature"])
    for part, text in (
        ("request", "Time from request to answer."),
        ("queue", "Time in the queue."),
        ("compute", "Time in the model."),
    )
}
_QUEUED = prometheus_client.Gauge("bert_tf_queued_requests", "Waiting or computed.")
_BYTES = prometheus_client.Gauge("bert_tf_bytes_in_progress", "Requests and answers.")


class _Request(requests.Request):
    """A request, and what the log says about it."""

    def __init__(self, scope: dict[str, Any], receive: Callable):
        super().__init__(scope, receive)
        self.path: str = scope["path"]
        identity = self.headers.get("x-request-id", "")
        is_usable = re.fullmatch(r"[\w.:/+=-]{1,128}", identity, re.ASCII)
        self.id = identity if is_usable else uuid.uuid4().hex
        self.num_bytes = 0  # In memory: the body, its columns, outputs, or the answer.
        self.num_rows = 0
        self.model: server_model.ServedModel | None = None  # At its arrival.
        self.signature = ""
        self.seconds: dict[str, float] = {}


class Application:
    """The paths of one model, whose versions may change.

    Args:
        options: the options of the server.
        name: the name of the model.
        log: takes the fields of a line of the log.
        fail: called with a message if the model can no longer answer.
        token: what requests must have, or None.

    Attributes:
        model: the version that answers; None before the first one is loaded.
        queue: where its requests are computed.
    """

    def __init__(
        self,
        options: server_options.ServeModelOptions,
        name: str,
        *,
        log: Callable[[dict[str, Any]], object],
        fail: Callable[[str], object],
        token: str | None = None,
    ):
        self.model: server_model.ServedModel | None = None
        self.queue = server_model.Queue(fail)
        self._options = options
        self._name = name
        self.log = log
        self._token = token
        self._num_bytes = self._num_jobs = 0
        self._threads = concurrent.futures.ThreadPoolExecutor(_NUM_THREADS)
        _QUEUED.set_function(lambda: self._num_jobs)
        _BYTES.set_function(lambda: self._num_bytes)
        self._hosts = {"localhost", "127.0.0.1", "::1", *options.allowed_host}
        model = f"/v1/models/{name}"
        self._documents: dict[str, Callable[[], responses.Response]] = {
            "/": _page,
            "/livez": lambda: responses.PlainTextResponse("ok"),
            "/readyz": self._ready,
            "/metrics": _metrics,
            "/v1/models": lambda: responses.JSONResponse(
                {"object": "list", "data": [{"id": name, "object": "model"}]}
            ),
            model: self._described(server_formats.status),
            f"{model}/metadata": self._described(server_formats.metadata),
        }
        self._readers = {
            f"{model}:predict": server_formats.read_query,
            "/v1/embeddings": server_formats.read_embeddings,
        }

    async def __call__(self, scope: Any, receive: Callable, send: Callable) -> None:
        """Answers a request."""
        started, status = time.perf_counter(), _CLIENT_IS_GONE
        request = _Request(scope, receive)
        request.model = self.model
        try:
            response = await self._answer(request)
            async with asyncio.timeout(self._options.queue_timeout_seconds):
                await _send(response, request.id, send)
            status = response.status_code
        except (requests.ClientDisconnect, TimeoutError):
            pass
        finally:
            self._hold(request, 0)
            request.seconds["request"] = time.perf_counter() - started
            self._record(request, status)

    async def _answer(self, request):
        """Returns the answer, or that of an error, in TensorFlow Serving's form."""
        limit = self._options.queue_timeout_seconds
        try:
            async with asyncio.timeout(limit):
                return await self._response(request)
        except requests.ClientDisconnect:
            raise
        except HTTPException as error:
            refusal = error
        except TimeoutError:
            refusal = HTTPException(504, f"There was no answer within {limit:g} s.")
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            self.log({"error": reason, "id": request.id})
            message = f"The server has an error; see {request.id} in its log."
            refusal = HTTPException(500, message)
        status, content = refusal.status_code, {"error": refusal.detail}
        headers = refusal.headers or _HEADERS.get(status)
        return responses.JSONResponse(content, status, headers)

    async def _response(self, request):
        self._check_access(request)
        version = r"\d+" if self.model is None else self.model.version
        versions = rf"^(/v1/models/{self._name})/versions/{version}\b"
        path = re.sub(versions, r"\1", request.path)
        message = f"No such path: {request.path:.80}; GET /v1/models names the model."
        _require(path in self._readers or path in self._documents, 404, message)
        methods = "POST" if path in self._readers else "GET, HEAD"
        if request.method not in methods.split(", "):
            raise HTTPException(405, f"Expected {methods}.", {"Allow": methods})
        if path in self._documents:
            return self._documents[path]()
        return await self._compute(self._readers[path], request)

    def _check_access(self, request):
        # h11 accepts longer headers that arrive at once.
        num_bytes = sum(len(name) + len(value) for name, value in request.headers.raw)
        _require(num_bytes <= MAX_HEADER_BYTES, 400, "Expected headers below 64 KiB.")
        host = request.headers.get("host", "localhost").lower()
        host = re.sub(r":\d*$", "", host).strip("[]")
        address = (request.scope.get("server") or ("",))[0].removeprefix("::ffff:")
        is_ours = host in (address, *map(str.lower, self._hosts))
        message = f"{host:.80} is not this server; --allowed_host accepts names."
        _require(is_ours, 403, message)
        if self._token is not None and request.path not in _PROBES:
            kind, _, secret = request.headers.get("authorization", "").partition(" ")
            secret = secret.encode("latin-1")
            if kind.lower() == "basic":  # Browsers ask for a name and a password.
                with contextlib.suppress(ValueError):
                    secret = base64.b64decode(secret).partition(b":")[2]
            is_right = hmac.compare_digest(secret, self._token.encode())
            message = "Expected a token, as in 'Authorization: Bearer TOKEN'."
            _require(is_right, 401, message)
        if request.method == "POST" and "origin" in request.headers:
            # Without asking us first, a page of another site can send some other types.
            kind = request.headers.get("content-type", "").partition(";")[0].strip()
            _require(kind == _JSON, 415, f"Expected {_JSON} from a web page.")

    def _loaded(self):
        _require(self.model is not None, 503, "The model is being loaded.")
        return self.model

    def _ready(self):
        self._loaded()
        self._check_room(503)
        is_stuck = self.queue.busy_seconds() > self._options.queue_timeout_seconds
        _require(not is_stuck, 503, "The model does not answer.")
        return responses.PlainTextResponse("ok")

    def _described(self, describe):
        return lambda: responses.JSONResponse(describe(self._name, self._loaded()))

    def _check_room(self, status):
        most = self._options.max_queue_size
        message = f"The queue is full ({most} requests); try again later."
        _require(self._num_jobs < most, status, message)

    async def _compute(self, read, request):
        """Returns the answer to a request to the model; its JSON is a thread's work."""
        model = self._loaded()
        in_thread = functools.partial(
            asyncio.get_running_loop().run_in_executor, self._threads
        )
        self._check_room(429)
        body = await self._body(request)
        try:
            job = await in_thread(self._job, read, body, model)
            request.signature, request.num_rows = job.signature.name, len(job.positions)
            self._hold(request, server_model.num_bytes(job.inputs))
            outputs = await self._outputs(request, job)
        except orjson.JSONDecodeError as error:
            raise HTTPException(400, f"The body is not JSON: {error}.") from None
        except ValueError as error:
            raise HTTPException(400, str(error)[:400]) from None
        except OSError as error:
            raise HTTPException(500, str(error)[:400]) from None
        job.inputs.clear()
        self._hold(request, _ANSWER * server_model.num_bytes(outputs))
        content = await in_thread(job.encode, outputs)
        self._hold(request, len(content))
        return responses.Response(content, media_type=_JSON)

    def _hold(self, request, num_bytes):
        """Counts what a request takes; raises HTTPException if there is no room."""
        is_more = num_bytes > request.num_bytes
        self._num_bytes += num_bytes - request.num_bytes
        request.num_bytes = num_bytes
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
                    self._hold(request, len(body))
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
        job = read(content, model, self._name)
        server_formats.check(job, self._options)
        return job

    async def _outputs(self, request, job):
        """Returns the outputs of a job, unless its client disconnects."""
        self._check_room(429)
        self._num_jobs += 1
        started = time.perf_counter()
        self.queue.put(job)
        outputs = asyncio.wrap_future(job.outputs)
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
            waited = time.perf_counter() - started - job.seconds
            request.seconds = {"queue": waited, "compute": job.seconds}

    def _record(self, request, status):
        """Counts and logs a request."""
        task, version = "", ""
        if (model := request.model) is not None:
            task, version = model.task.get("task", ""), model.version
        _REQUESTS.labels(request.signature, status, task, version).inc()
        if status < 400 and request.signature:
            for part, seconds in request.seconds.items():
                _SECONDS[part].labels(request.signature).observe(seconds)
        if request.path in (*_PROBES, "/metrics"):
            return
        line = {"method": request.method, "path": request.path[:200], "status": status}
        line |= {"id": request.id, "version": version, "rows": request.num_rows}
        for part, seconds in request.seconds.items():
            line[f"{part}_ms"] = round(1000 * seconds, 1)
        self.log(line)


async def _send(response, identity, send):
    """Sends an answer in parts, so that a slow client takes no memory."""
    response.headers["x-content-type-options"] = "nosniff"
    response.headers["x-request-id"] = identity
    start = {"status": response.status_code, "headers": response.raw_headers}
    await send({"type": "http.response.start", **start})
    content = response.body
    for begin in range(0, len(content) or 1, _CHUNK_BYTES):
        end = begin + _CHUNK_BYTES
        part = {"body": content[begin:end], "more_body": end < len(content)}
        await send({"type": "http.response.body", **part})


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
