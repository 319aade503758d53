"""A test double of the download server, which can fail as servers do.

A behavior is a function of a request's handler. `Server.script` has those of the
next requests; afterwards every one is answered as it should be.
"""

import contextlib
import http.server
import re
import threading
import time


class Server(http.server.ThreadingHTTPServer):
    """Serves the same content under every path; records the requests."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), _Request)
        self.content = content
        self.script = []
        self.asked = []  # Of every request: path and Range.
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """Prints nothing: the tests hang up on purpose."""


@contextlib.contextmanager
def serving(content):
    """Yields a `Server` that runs in a thread."""
    with Server(content) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class _Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.path, self.headers["Range"]))
        self.close_connection = True
        script = self.server.script
        (script.pop(0) if script else properly)(self)

    def log_message(self, *arguments):
        pass

    def answer(self, status, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def whole(self, **headers):
        content = self.server.content
        self.answer(200, **{"Content_Length": len(content), **headers})
        return content


def properly(request, limit=None):
    """The whole, or the requested range; at most `limit` bytes."""
    content = request.server.content
    match = re.fullmatch(r"bytes=(\d+)-", request.headers["Range"] or "")
    if match is None:
        request.wfile.write(request.whole()[:limit])
        return
    start = int(match[1])
    if start >= len(content):
        request.answer(416, Content_Range=f"bytes */{len(content)}", Content_Length=0)
        return
    request.answer(
        206,
        Content_Length=len(content) - start,
        Content_Range=f"bytes {start}-{len(content) - 1}/{len(content)}",
    )
    request.wfile.write(content[start:][:limit])


def cut_after(num_bytes):
    """Announces the whole file, then hangs up."""
    return lambda request: properly(request, limit=num_bytes)


def hang_up(request):
    """Sends nothing, not even a status."""
    request.connection.close()


def slowly(seconds, num_parts=100):
    """Sends the body in many parts, so that a test can interrupt it."""

    def send(request):
        content = request.whole()
        size = len(content) // num_parts + 1
        for start in range(0, len(content), size):
            request.wfile.write(content[start : start + size])
            time.sleep(seconds / num_parts)

    return send


def after(event):
    """Waits for an event, then sends the file."""

    def send(request):
        event.wait(600)
        properly(request)

    return send


def status(code):
    return lambda request: request.answer(code, Content_Length=0)


def without_range(request):
    """Sends the whole file, regardless of the requested range."""
    request.wfile.write(request.whole())


def with_length(length):
    """Announces a different length from what it sends."""
    return lambda request: request.wfile.write(request.whole(Content_Length=length))


def chunked(request):
    request.answer(200, Transfer_Encoding="chunked")
    content = request.server.content
    request.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))


def redirect(path):
    return lambda request: request.answer(302, Location=path, Content_Length=0)
