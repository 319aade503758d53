"""Calls a model through TensorFlow Serving's REST API."""

import json
from collections.abc import Callable
from typing import Any

from bert_tf import files
from bert_tf.serving import connection

# Overloaded, restarting, or a proxy whose server is not ready.
_RETRIED_STATUSES = (429, 502, 503, 504)
# A signature of our classifiers, and its only output.
_KNOWN_ONLY_OUTPUTS = {"labels": "labels"}


def caller(
    address: connection.Address, settings: connection.Settings
) -> Callable[[str, dict[str, list]], dict[str, list]]:
    """Returns a function that calls a signature; see `client.Client`."""
    session = _session(settings)
    only_outputs = dict(_KNOWN_ONLY_OUTPUTS)  # Signature -> its only output.

    def call(name, inputs):
        body = {"signature_name": name, "inputs": inputs}
        url = f"{address.url}:predict"
        reply = _request_json(session.post, url, address, settings, json=body)
        if not isinstance(reply, dict) or "outputs" not in reply:
            raise ValueError(
                f"{address.url} returned no outputs but {json.dumps(reply)[:200]}."
            )
        outputs = reply["outputs"]
        if isinstance(outputs, dict):
            return outputs
        # The server leaves out the name if a signature has only one output.
        if name not in only_outputs:
            only_outputs[name] = _only_output(session, address, settings, name)
        return {only_outputs[name]: outputs}

    return call


def _only_output(session, address, settings, name):
    """Returns the name of a signature's only output, which the metadata contain."""
    reply = _request_json(session.get, f"{address.url}/metadata", address, settings)
    try:
        signatures = reply["metadata"]["signature_def"]["signature_def"]
        [output] = signatures[name]["outputs"]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{address.url}/metadata does not name the output of the signature {name}, "
            f"but contains {json.dumps(reply)[:200]}."
        ) from None
    return output


def _session(settings):
    import requests
    import requests.adapters
    import urllib3

    class Retry(urllib3.Retry):
        def increment(self, *args: Any, **kwargs: Any) -> Any:
            error = kwargs.get("error")
            final = (urllib3.exceptions.ReadTimeoutError, urllib3.exceptions.SSLError)
            if isinstance(error, final):
                raise error
            return super().increment(*args, **kwargs)

    retry = Retry(
        total=settings.num_retries,
        backoff_factor=connection.BACKOFF_SECONDS,
        backoff_max=connection.MAX_BACKOFF_SECONDS,
        status_forcelist=_RETRIED_STATUSES,
        allowed_methods=None,  # Also POST: a prediction changes nothing on the server.
        raise_on_status=False,
        # A server cannot make the client wait for minutes.
        respect_retry_after_header=False,
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, requests.adapters.HTTPAdapter(max_retries=retry))
    session.headers.update(settings.header_pairs())
    if "Authorization" in session.headers:
        # Otherwise ~/.netrc replaces the header.
        session.auth = lambda request: request
    if settings.client_cert_file is not None:
        session.cert = (settings.client_cert_file, settings.client_key_file)
    return session


def _request_json(method, url, address, settings, **body):
    """Returns the reply to a request, given a method of a session."""
    import requests
    import urllib3

    model = address.url
    try:
        reply = method(
            url,
            timeout=settings.timeout_seconds,
            # Not `session.verify`, which loses to REQUESTS_CA_BUNDLE.
            verify=settings.ca_file,
            **body,
        )
    except requests.exceptions.Timeout as error:
        raise TimeoutError(
            f"{model} did not answer within {settings.timeout_seconds:g} seconds."
        ) from error
    except requests.exceptions.SSLError as error:
        raise ConnectionError(
            f"{model}: no secure connection: {_reason(error)}. Does --ca_file contain "
            "the certificate of the server's authority?"
        ) from error
    except requests.exceptions.RequestException as error:
        timeout = urllib3.exceptions.ReadTimeoutError
        if any(isinstance(one, timeout) for one in error.args):
            raise TimeoutError(
                f"{model} began to answer, but sent nothing more for "
                f"{settings.timeout_seconds:g} seconds."
            ) from error
        raise ConnectionError(
            f"{model} cannot be reached: {_reason(error)}. Is the server running there?"
        ) from error
    if not reply.ok:
        raise ValueError(f"{model} refused the query: {_refusal(reply)}.")
    return files.parse_json(
        reply.content,
        f"The answer of {model}",
        advice="expected the REST API of a model server",
    )


def _reason(error):
    """Returns the message of the innermost error, such as "Connection refused"."""
    while True:
        inner = getattr(error, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next(
                (arg for arg in reversed(error.args) if isinstance(arg, BaseException)),
                None,
            )
        if inner is None:
            return str(error).rsplit(": ", 1)[-1].rstrip(".")
        error = inner


def _refusal(reply):
    text = reply.content.decode("utf-8", "replace")
    try:
        text = json.loads(text)["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = text or reply.reason
    return f"{reply.status_code}, {' '.join(str(text).split())[:300].rstrip('.')}"
