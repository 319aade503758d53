"""The paths of the server, as an ASGI application.

Every request passes the same gates: its host and token, a place in the queue, the time
and size of its body, and the limits on its rows and its work.
"""

import asyncio
import base64
import concurrent.futures
import contextlib
import hashlib
import hmac
import importlib.resources
import json
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

from bert_tf.serving import server_formats
from bert_tf.serving import server_model
from bert_tf.serving import server_options
from bert_tf.serving.server_model import RequestError

MAX_BYTES_IN_PROGRESS = 64 * 2**20
ARRIVAL_SECONDS = 10.0  # Of headers, and of a body.
_PROBES = ("/livez", "/readyz")
_VERSION = re.compile(r"(/v1/models/[^/:]+)/versions/(\d{1,18})(|/metadata|:predict)")
_JSON = "application/json"
_CHUNK_BYTES = 2**16
_LATE = (408, 504)
# Bytes of outputs and their answer, for each byte of the outputs; at most.
_ANSWER = 5
_CLIENT_IS_GONE = 499  # For the log and the counters, as in nginx.


class _Disconnected(Exception):  # noqa: N818
    """The client no longer waits for an answer."""


class _Exchange:
    """A request and its answer."""

    def __init__(self, scope: dict[str, Any], receive: Callable):
        self.started = time.perf_counter()
        self.method, self.path = scope["method"], scope["path"]
        self.server = (scope.get("server") or ("",))[0].removeprefix("::ffff:")
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        identity = self.headers.get("x-request-id", "")
        is_usable = re.fullmatch(r"[\w.:/+=-]{1,128}", identity, re.ASCII)
        self.id = identity if is_usable else uuid.uuid4().hex
        self._receive = receive
        self.has_more_body = True
        self.num_bytes = 0  # In memory: the body, its columns, outputs, or the answer.
        self.job: server_model.Job | None = None
        self.status = 200
        self.reply_headers: dict[str, str] = {}

    def reply(self, content: str | bytes, kind: str = _JSON, **headers: str) -> bytes:
        """Sets the headers of an answer, and returns its content."""
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.reply_headers = {"content-type": kind, **names}
        return content.encode() if isinstance(content, str) else content

    def refuse(self, error: RequestError) -> bytes:
        """Sets the headers of a refusal in the form of its API."""
        self.status = error.status
        # JSON can hold "\\ud800", which is no Unicode.
        message = str(error).encode(errors="backslashreplace").decode()
        content: Any = {"error": message}
        if self.path == "/v1/embeddings":
            kind = "server_error" if error.status >= 500 else "invalid_request_error"
            content = {"error": {"message": message, "type": kind}}
        return self.reply(json.dumps(content), **error.headers)

    async def read(self) -> bytes:
        """Returns the next part of the body."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        self.has_more_body = message.get("more_body", False)
        return message.get("body", b"")

    async def send(self, content: bytes, send: Callable) -> None:
        """Sends the answer in parts, so that a slow client takes no memory."""
        if self.status not in _LATE:  # Many clients read answers only after the body.
            with contextlib.suppress(TimeoutError, _Disconnected):
                async with asyncio.timeout(ARRIVAL_SECONDS):
                    while self.has_more_body:
                        await self.read()
        headers = {
            **self.reply_headers,
            "content-length": str(len(content)),
            "x-content-type-options": "nosniff",
            "x-request-id": self.id,
            **({"connection": "close"} if self.has_more_body else {}),
        }
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        start = {"type": "http.response.start", "status": self.status, "headers": pairs}
        await send(start)
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
        # JSON is read and written outside the event loop.
        self._threads = concurrent.futures.ThreadPoolExecutor(2)
        self._metrics = _Metrics(queue, lambda: self._num_bytes)
        names = ("localhost", "127.0.0.1", "::1", *options.allowed_host)
        self._hosts = {name.lower() for name in names}
        models = [{"id": name, "object": "model", "owned_by": "bert_tf"}]
        self._gets: dict[str, Callable[[_Exchange], bytes]] = {
            "/": _page,
            "/livez": lambda exchange: exchange.reply("ok", "text/plain"),
            "/readyz": self._ready,
            "/metrics": lambda exchange: exchange.reply(*self._metrics.text()),
            "/v1/models": lambda exchange: exchange.reply(
                json.dumps({"object": "list", "data": models})
            ),
            f"/v1/models/{name}": lambda exchange: exchange.reply(
                server_formats.status(self._loaded().version)
            ),
            f"/v1/models/{name}/metadata": lambda exchange: exchange.reply(
                server_formats.metadata(name, self._loaded())
            ),
        }
        self._posts = {
            f"/v1/models/{name}:predict": server_formats.read_query,
            "/v1/embeddings": server_formats.read_embeddings,
        }

    async def __call__(self, scope: Any, receive: Callable, send: Callable) -> None:
        """Answers a request."""
        exchange = _Exchange(scope, receive)
        limit = self._options.queue_timeout_seconds
        content = None  # The client is gone.
        try:
            async with asyncio.timeout(limit):
                content = await self._content(exchange)
        except _Disconnected:
            pass
        except TimeoutError:
            reason = f"There was no answer within {limit:g} seconds."
            content = exchange.refuse(RequestError(504, reason))
        except RequestError as error:
            content = exchange.refuse(error)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:300]
            self._log({"error": reason, "id": exchange.id})
            content = exchange.refuse(
                RequestError(500, "The server failed; see its log.")
            )
        self._hold(exchange, len(content or b""))
        try:
            async with asyncio.timeout(limit):
                if content is not None:
                    await exchange.send(content, send)
        except TimeoutError:
            content = None
        finally:
            self._hold(exchange, 0)
            status = exchange.status if content is not None else _CLIENT_IS_GONE
            self._record(exchange, status)

    async def _content(self, exchange):
        """Returns the content of an answer."""
        self._check_access(exchange)
        route = exchange.path
        if match := _VERSION.fullmatch(route):
            is_served = int(match[2]) == self._loaded().version
            route = match[1] + match[3] if is_served else None
        if route not in (*self._gets, *self._posts):
            raise RequestError(
                404,
                f"No such path: {exchange.path:.80}; GET /v1/models names the model.",
            )
        methods = ("POST",) if route in self._posts else ("GET", "HEAD")
        if exchange.method not in methods:
            message = f"Expected {methods[0]}, got {exchange.method:.20}."
            raise RequestError(405, message, Allow=", ".join(methods))
        if route in self._gets:
            return self._gets[route](exchange)
        self._loaded()
        self._queue.check_room()
        body = await self._body(exchange)
        job = await self._in_thread(self._read, self._posts[route], body)
        self._hold(exchange, server_model.num_bytes(job.inputs))
        outputs = await self._outputs(exchange, job)
        try:
            self._reserve(exchange, _ANSWER * server_model.num_bytes(outputs))
            return exchange.reply(await self._in_thread(job.encode, outputs))
        finally:  # The job is needed for the log.
            job.inputs.clear()
            outputs.clear()

    def _check_access(self, exchange):
        host = exchange.headers.get("host", "localhost").lower()
        host = re.sub(r":\d*$", "", host).strip("[]")
        if host != exchange.server and host not in self._hosts:
            raise RequestError(
                403, f"{host:.80} is not this server; --allowed_host accepts names."
            )
        if self._token is not None and exchange.path not in _PROBES:
            kind, _, secret = exchange.headers.get("authorization", "").partition(" ")
            secret = secret.encode("latin-1")
            if kind.lower() == "basic":  # Browsers ask for a name and a password.
                with contextlib.suppress(ValueError):
                    secret = base64.b64decode(secret).partition(b":")[2]
            if not hmac.compare_digest(secret, self._token.encode()):
                message = "Expected a token, as in 'Authorization: Bearer TOKEN'."
                challenge = 'Bearer, Basic realm="bert_tf"'
                raise RequestError(401, message, WWW_Authenticate=challenge)
        kind = exchange.headers.get("content-type", "").partition(";")[0].strip()
        # Without asking us first, a page of another site can send some other types.
        if exchange.method == "POST" and "origin" in exchange.headers and kind != _JSON:
            raise RequestError(415, f"Expected {_JSON} from a web page.")

    def _loaded(self):
        if self.model is None:
            raise RequestError(503, "The model is being loaded.", Retry_After="5")
        return self.model

    def _ready(self, exchange):
        self._loaded()
        if self._queue.size() >= self._options.max_queue_size:
            raise RequestError(503, "The queue is full.")
        if self._queue.busy_seconds() > self._options.queue_timeout_seconds:
            raise RequestError(503, "The model does not answer.")
        return exchange.reply("ok", "text/plain")

    def _hold(self, exchange, num_bytes):
        self._num_bytes += num_bytes - exchange.num_bytes
        exchange.num_bytes = num_bytes

    def _reserve(self, exchange, num_bytes):
        """Counts what a request takes; raises RequestError if there is no room."""
        self._hold(exchange, num_bytes)
        if num_bytes > MAX_BYTES_IN_PROGRESS:
            raise RequestError(400, "It takes too much memory; send several requests.")
        if self._num_bytes > MAX_BYTES_IN_PROGRESS:
            message = "Too many bytes are in progress; try again later."
            raise RequestError(429, message, Retry_After="1")

    async def _body(self, exchange):
        """Returns the body, within the limits of time and size."""
        limit = self._options.max_body_mb * 2**20
        size = int(exchange.headers.get("content-length", 0))
        body = bytearray()
        try:
            async with asyncio.timeout(ARRIVAL_SECONDS):
                while exchange.has_more_body and max(size, len(body)) <= limit:
                    body += await exchange.read()
                    self._reserve(exchange, len(body))
        except TimeoutError:
            message = f"The body did not arrive within {ARRIVAL_SECONDS:g} seconds."
            raise RequestError(408, message) from None
        if max(size, len(body)) > limit:
            message = f"Expected a body of at most {self._options.max_body_mb} MiB."
            raise RequestError(413, message)
        return body

    def _read(self, read, body):
        """Returns the job of a body, which is dropped."""
        try:
            content = json.loads(body)
            body.clear()
            if not isinstance(content, dict):
                raise ValueError("The body must be a JSON object.")
            job = read(content, self._loaded(), self._name)
            server_formats.check(job, self._options)
        except RecursionError:
            message = "The body has too many nested lists or objects."
            raise RequestError(400, message) from None
        except json.JSONDecodeError as error:
            raise RequestError(400, f"The body is not JSON: {error}.") from None
        except ValueError as error:
            raise RequestError(400, str(error)) from None
        return job

    def _in_thread(self, function, *arguments):
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._threads, function, *arguments)

    async def _outputs(self, exchange, job):
        """Returns the outputs of a job, unless its client disconnects."""
        exchange.job = job
        self._queue.put(job)
        answer = asyncio.wrap_future(job.future)
        gone = asyncio.ensure_future(exchange.read())
        try:
            await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise _Disconnected
            return answer.result()
        finally:
            gone.cancel()
            answer.cancel()
            self._queue.remove(job)

    def _record(self, exchange, status):
        """Counts and logs a request."""
        job, model = exchange.job, self.model
        seconds = time.perf_counter() - exchange.started
        line = {"method": exchange.method, "path": exchange.path[:200]}
        line |= {"status": status, "ms": round(1000 * seconds, 1), "id": exchange.id}
        if job is not None:
            line["version"] = job.model.version
            line["rows"] = len(job.positions)
            line["queue_ms"] = round(1000 * job.queue_seconds, 1)
            line["compute_ms"] = round(1000 * job.compute_seconds, 1)
        self._metrics.count(job, model, status, seconds)
        if exchange.path not in (*_PROBES, "/metrics"):
            self._log(line)


class _Metrics:
    """Counters for Prometheus."""

    def __init__(self, queue: server_model.Queue, num_bytes: Callable[[], int]):
        import prometheus_client

        self._registry = prometheus_client.CollectorRegistry()

        def create(kind, name, help_text, *labels):
            return kind(f"bert_tf_{name}", help_text, labels, registry=self._registry)

        labels = ("signature", "status", "task", "version")
        counter, histogram = prometheus_client.Counter, prometheus_client.Histogram
        self._requests = create(counter, "requests", "Also refused ones.", *labels)
        self._seconds = [
            create(histogram, f"{part}_seconds", help_text, "signature")
            for part, help_text in (
                ("request", "Time from request to answer."),
                ("queue", "Time in the queue."),
                ("compute", "Time in the model."),
            )
        ]
        gauge = prometheus_client.Gauge
        waiting = create(gauge, "queued_requests", "Waiting or computed.")
        waiting.set_function(queue.size)
        held = create(gauge, "bytes_in_progress", "Of requests and answers.")
        held.set_function(num_bytes)

    def count(self, job: Any, model: Any, status: int, seconds: float) -> None:
        """Counts a request; `job` is None if it did not reach the queue."""
        model = model if job is None else job.model
        task = "" if model is None else str(model.task.get("task", ""))
        version = "" if model is None else model.version
        signature = "" if job is None else job.signature
        self._requests.labels(signature, status, task, version).inc()
        if job is not None and status < 400:
            times = (seconds, job.queue_seconds, job.compute_seconds)
            for histogram, value in zip(self._seconds, times, strict=True):
                histogram.labels(signature).observe(value)

    def text(self) -> tuple[bytes, str]:
        """Returns the counters and their media type."""
        import prometheus_client

        content = prometheus_client.generate_latest(self._registry)
        return content, prometheus_client.CONTENT_TYPE_LATEST


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
    return exchange.reply(
        page,
        "text/html; charset=utf-8",
        Content_Security_Policy="; ".join(policy),
        X_Frame_Options="DENY",
    )
