"""Calls a model through TensorFlow Serving's REST API, which `serve_model` has too."""

import json
import re
from collections.abc import Iterable

from bert_tf import files

_NUM_RETRIES = 3
# The wait before the first retry; it doubles with every retry.
BACKOFF_SECONDS = 0.5
# Overloaded, restarting, or a proxy whose server is not ready.
_RETRIED_STATUSES = (429, 502, 503, 504)
_ADDRESS = re.compile(
    r"https?://[^/\s]+\S*?/v1/models/[^/:\s]+(/versions/\d+|/labels/[^/:\s]+)?/?"
)


class Connection:
    """A model on a server.

    A call that finds no connection, or is refused because the server is overloaded, is
    repeated. A time-out or a lost connection is final: the server may still be working.

    Args:
        url: `http://HOST:PORT/v1/models/NAME`, or with https. `/versions/2` or
            `/labels/stable` at the end selects a version.
        timeout_seconds: how long one attempt waits for an answer.
        headers: of every call, each "Name: value".

    Raises:
        ValueError: the URL is not that of a model, or a header is malformed.
    """

    def __init__(self, url: str, timeout_seconds: float, headers: Iterable[str]):
        if _ADDRESS.fullmatch(url) is None:
            raise ValueError(
                f"{url!r} is not the address of a model; expected "
                "http://HOST:PORT/v1/models/NAME."
            )
        self._model = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._session = _session(map(_header, headers))
        # Signature -> the name of its only output.
        self._only_outputs = {"labels": "labels"}

    def call(self, signature: str, inputs: dict[str, list]) -> dict[str, list]:
        """Calls a signature; see `client.Client`."""
        body = {"signature_name": signature, "inputs": inputs}
        reply = self._reply("POST", ":predict", json=body)
        if not isinstance(reply, dict) or "outputs" not in reply:
            raise ValueError(
                f"{self._model} returned no outputs but {json.dumps(reply)[:200]}."
            )
        outputs = reply["outputs"]
        if isinstance(outputs, dict):
            return outputs
        # The server leaves out the name if a signature has only one output.
        if signature not in self._only_outputs:
            self._only_outputs[signature] = self._only_output(signature)
        return {self._only_outputs[signature]: outputs}

    def _only_output(self, signature):
        metadata = self._reply("GET", "/metadata")
        try:
            signatures = metadata["metadata"]["signature_def"]["signature_def"]
            [output] = signatures[signature]["outputs"]
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{self._model}/metadata does not name the output of the signature "
                f"{signature}, but contains {json.dumps(metadata)[:200]}."
            ) from None
        return output

    def _reply(self, method, path, **body):
        """Returns the JSON of a reply."""
        import requests
        import urllib3

        url, limit = self._model + path, self._timeout_seconds
        try:
            reply = self._session.request(method, url, timeout=limit, **body)
        except requests.exceptions.RequestException as error:
            late = (requests.exceptions.Timeout, urllib3.exceptions.ReadTimeoutError)
            if any(isinstance(one, late) for one in (error, *error.args)):
                message = f"{self._model} did not answer within {limit:g} seconds."
                raise TimeoutError(message) from error
            raise ConnectionError(
                f"{self._model} cannot be reached: {_reason(error)}. Check that the "
                "server runs there and, for https, that the file in REQUESTS_CA_BUNDLE "
                "has the certificate of its authority."
            ) from error
        if not reply.ok:
            raise ValueError(f"{self._model} refused the query: {_refusal(reply)}.")
        return files.parse_json(
            reply.content,
            f"The answer of {self._model}",
            advice="expected the REST API of a model server",
        )


def _header(header):
    """Returns the name and the value of a header."""
    name, colon, value = (part.strip() for part in header.partition(":"))
    is_ascii = (name + value).isascii() and (name + value).isprintable()
    if not colon or not name or not is_ascii:
        raise ValueError(
            f"The header is {header!r:.80}; expected 'Name: value' in printable ASCII, "
            "such as 'Authorization: Bearer TOKEN'."
        )
    return name, value


def _session(headers):
    import requests
    import requests.adapters
    import urllib3

    retry = urllib3.Retry(
        total=_NUM_RETRIES,
        read=False,
        other=0,  # Errors of TLS.
        backoff_factor=BACKOFF_SECONDS,
        status_forcelist=_RETRIED_STATUSES,
        allowed_methods=None,  # Also POST: a prediction changes nothing on the server.
        raise_on_status=False,
        # A server cannot make the client wait for minutes.
        respect_retry_after_header=False,
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    session.headers.update(headers)
    if "Authorization" in session.headers:
        # Otherwise ~/.netrc replaces the header.
        session.auth = lambda request: request
    return session


def _reason(error):
    """Returns the message of the innermost error, such as "Connection refused"."""
    parts = [*error.args, getattr(error, "reason", None)]
    causes = [part for part in parts if isinstance(part, BaseException)]
    if causes:
        return _reason(causes[-1])
    return str(error).rsplit(": ", 1)[-1].rstrip(".")


def _refusal(reply):
    text = reply.content.decode("utf-8", "replace")
    try:
        text = json.loads(text)["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = text or reply.reason
    return f"{reply.status_code}, {' '.join(str(text).split())[:300].rstrip('.')}"
