"""Stands in for TensorFlow Serving's REST API in tests, with its failures."""

import contextlib
import http.server
import json
import threading

import numpy as np
import tensorflow as tf


class RestDouble:
    """Answers with one SavedModel.

    Source of the replies' form: tensorflow.org/tfx/serving/api_rest, "Predict API",
    columnar format, and "Model Metadata API".
    """

    def __init__(self, export_dir):
        self.model = tf.saved_model.load(export_dir)
        self.requests = []

    def reply(self, path, body):
        if path == "/v1/models/topics/metadata":
            outputs = {
                name: {"outputs": {key: {} for key in signature.structured_outputs}}
                for name, signature in self.model.signatures.items()
            }
            return 200, {"metadata": {"signature_def": {"signature_def": outputs}}}
        self.requests.append(body)
        if path not in (
            "/v1/models/topics:predict",
            "/v1/models/topics/versions/1:predict",
        ):
            return 404, {"error": f"Servable not found for request: {path}"}
        signature = self.model.signatures[body["signature_name"]]
        wanted = set(signature.structured_input_signature[1])
        if set(body["inputs"]) != wanted:
            return 400, {"error": "input tensor alias not found in signature"}
        outputs = signature(**{k: tf.constant(v) for k, v in body["inputs"].items()})
        outputs = {
            key: np.vectorize(bytes.decode)(value.numpy()).tolist()
            if value.dtype == tf.string
            else value.numpy().tolist()
            for key, value in outputs.items()
        }
        if len(outputs) == 1:  # It comes without its name.
            (outputs,) = outputs.values()
        return 200, {"outputs": outputs}


@contextlib.contextmanager
def serving(reply, *, tls=None, headers=None):
    """Yields the address of a server that answers with what `reply` returns.

    Args:
        reply: takes path and body, None for a GET, and returns a status and the
            content.
        tls: None, or an `ssl.SSLContext`.
        headers: None, or a list that receives the headers of every call.
    """

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            size = int(self.headers["Content-Length"])
            self.answer(json.loads(self.rfile.read(size)))

        def do_GET(self):
            self.answer(None)

        def answer(self, body):
            if headers is not None:
                headers.append(self.headers)
            status, content = reply(self.path, body)
            data = (
                content if isinstance(content, bytes) else json.dumps(content).encode()
            )
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(data)

        def log_message(self, *unused):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *unused):
            pass

    with Server(("127.0.0.1", 0), Answering) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
