"""The server's replies in the forms of TensorFlow Serving and of OpenAI."""

import base64
import json
from typing import Any

import numpy as np

from bert_tf.serving import client
from bert_tf.serving import saved_signatures


def status(version: int) -> dict[str, Any]:
    """Returns the reply to GET /v1/models/NAME.

    Source: tensorflow.org/tfx/serving/api_rest, "Model status API".
    """
    state = {
        "version": str(version),
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    return {"model_version_status": [state]}


def metadata(
    name: str, version: int, signatures: dict[str, saved_signatures.Signature]
) -> dict[str, Any]:
    """Returns the reply to GET /v1/models/NAME/metadata.

    Source: tensorflow.org/tfx/serving/api_rest, "Model Metadata API".
    """
    from google.protobuf import json_format

    definitions = {
        signature.name: json_format.MessageToDict(
            signature.definition,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for signature in signatures.values()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(version)},
        "metadata": {"signature_def": {"signature_def": definitions}},
    }


def columns_of(
    body: dict[str, Any], signature: saved_signatures.Signature
) -> dict[str, np.ndarray]:
    """Returns the arrays of a predict request, in columns or in rows.

    Args:
        body: the request, with `inputs` (columns) or `instances` (rows).
        signature: the signature that it calls.

    Raises:
        ValueError: the request is malformed.

    Source: tensorflow.org/tfx/serving/api_rest, "Predict API".
    """
    if ("inputs" in body) == ("instances" in body):
        raise ValueError("Expected either inputs or instances.")
    if "inputs" in body:
        return signature.arrays(body["inputs"])
    rows = body["instances"]
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"instances must be a list of rows, got {rows!r:.80}.")
    is_named = isinstance(rows[0], dict) and set(rows[0]) != {"b64"}
    if not is_named:
        return signature.arrays(rows)
    names = set(rows[0])
    if not all(isinstance(row, dict) and set(row) == names for row in rows):
        raise ValueError("All instances must have the same names.")
    return signature.arrays({name: [row[name] for row in rows] for name in rows[0]})


def prediction(body: dict[str, Any], outputs: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns the reply to a predict request, in the form of the request.

    As in TensorFlow Serving, an output that is the only one has no name.
    """
    columns = {name: _as_json(value) for name, value in sorted(outputs.items())}
    only = next(iter(columns.values())) if len(columns) == 1 else None
    if "inputs" in body:
        return {"outputs": columns if only is None else only}
    if only is not None:
        return {"predictions": only}
    rows = zip(*columns.values(), strict=True)
    return {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}


def texts_to_embed(body: dict[str, Any], name: str) -> list[Any]:
    """Returns the texts of a request for embeddings, which may still be no texts.

    Args:
        body: the request: `input`, and optionally `model` and `encoding_format` (which
            may be null).
        name: the name of the model.

    Raises:
        LookupError: the request names another model.
        ValueError: the request is malformed, or asks for what the model cannot do.

    Source: platform.openai.com/docs/api-reference/embeddings.
    """
    if body.get("model", name) != name:
        raise LookupError(f"The model {body['model']!r} does not exist; it is {name}.")
    if body.get("encoding_format") not in (None, "float", "base64"):
        raise ValueError("encoding_format must be float or base64.")
    texts = body.get("input")
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts:
        raise ValueError("input must be a text or a list of texts.")
    return texts


def signature_to_embed(body: dict[str, Any]) -> str:
    """Returns the name of the signature that computes a request's vectors.

    Args:
        body: the request. OpenAI has no `input_type`; other servers of its API do.

    Raises:
        ValueError: the request is malformed.
    """
    kind = body.get("input_type", "document")
    if kind not in ("document", "query"):
        raise ValueError(f"input_type must be document or query, got {kind!r:.80}.")
    return "query" if kind == "query" else client.DEFAULT_SIGNATURE


def check_dimensions(body: dict[str, Any], length: int) -> None:
    """Raises a ValueError if a request asks for vectors of another length.

    Args:
        body: the request; `dimensions` is optional.
        length: of the model's vectors.
    """
    if body.get("dimensions") not in (None, length):
        raise ValueError(
            f"dimensions must be {length} or left out, got "
            f"{body['dimensions']!r:.80}: the model's vectors have a fixed length."
        )


def embeddings(body: dict[str, Any], vectors: np.ndarray, name: str) -> dict[str, Any]:
    """Returns the reply to a request for embeddings.

    The numbers of tokens are 0: a SavedModel does not report them.
    """
    if body.get("encoding_format") == "base64":
        packed = np.asarray(vectors, "<f4")
        rows: list[Any] = [base64.b64encode(row.tobytes()).decode() for row in packed]
    else:
        rows = vectors.tolist()
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in enumerate(rows)
        ],
        "model": name,
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }


def encoded(reply: dict[str, Any]) -> bytes:
    """Returns a reply as JSON."""
    return json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode()


def _as_json(array):
    if array.dtype != object:
        return array.tolist()
    flat = [value.decode("utf-8", "replace") for value in array.ravel()]
    texts = np.empty(len(flat), object)
    texts[:] = flat
    return texts.reshape(array.shape).tolist()
