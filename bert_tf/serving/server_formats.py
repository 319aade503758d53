"""Requests and answers in the forms of TensorFlow Serving and of OpenAI."""

import base64
import functools
from typing import Any

import numpy as np
import orjson

from bert_tf.serving import client
from bert_tf.serving import server_model
from bert_tf.serving.server_model import Job
from bert_tf.serving.server_model import ServedModel

MAX_ROWS = 2048  # Of a request, as OpenAI has it.


def status(model: ServedModel) -> dict[str, Any]:
    """Returns the reply to GET /v1/models/NAME.

    Source: tensorflow.org/tfx/serving/api_rest, "Model status API".
    """
    status = {"error_code": "OK", "error_message": ""}
    version = {"version": str(model.version), "state": "AVAILABLE", "status": status}
    return {"model_version_status": [version]}


def metadata(model: ServedModel) -> dict[str, Any]:
    """Returns the reply to GET /v1/models/NAME/metadata.

    Source: tensorflow.org/tfx/serving/api_rest, "Model Metadata API".
    """
    definitions = {
        name: {
            "inputs": _tensors(signature.inputs),
            "outputs": _tensors(signature.outputs),
            "method_name": "tensorflow/serving/predict",
        }
        for name, signature in model.signatures.items()
    }
    spec = {"name": model.name, "signature_name": "", "version": str(model.version)}
    signatures = {"signature_def": {"signature_def": definitions}}
    return {"model_spec": spec, "metadata": signatures}


def _tensors(specs):
    from tensorflow.core.framework import types_pb2

    tensors = {}
    for name, spec in specs.items():
        dtype = types_pb2.DataType.Name(spec.dtype.as_datatype_enum)
        sizes = [{"size": str(size or -1), "name": ""} for size in spec.shape]
        shape = {"dim": sizes, "unknown_rank": False}
        tensors[name] = {"name": name, "dtype": dtype, "tensor_shape": shape}
    return tensors


def read_query(body: dict[str, Any], model: ServedModel) -> Job:
    """Returns the job of a predict request, in columns (inputs) or rows (instances).

    Raises:
        ValueError: the request is malformed.

    Source: tensorflow.org/tfx/serving/api_rest, "Predict API".
    """
    chosen = body.get("signature_name") or client.DEFAULT_SIGNATURE
    signature = model.signatures.get(chosen) if isinstance(chosen, str) else None
    if signature is None:
        expected = ", ".join(sorted(model.signatures))
        raise ValueError(
            f"Unknown signature {chosen!r:.80}; expected one of {expected}."
        )
    is_rows = "instances" in body
    if ("inputs" in body) == is_rows:
        raise ValueError("Expected either inputs or instances.")
    inputs = _columns(body["instances"]) if is_rows else body["inputs"]
    ragged = signature.ragged_answers
    encode = functools.partial(_rows, ragged=ragged) if is_rows else _outputs
    return Job(model, signature, signature.arrays(inputs), encode, is_rows=is_rows)


def _columns(rows):
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"instances must be a list of rows, got {rows!r:.80}.")
    if not isinstance(rows[0], dict):
        return rows
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != set(rows[0]):
            raise ValueError(f"instances[{number}] has other names than instances[0].")
    return {name: [row[name] for row in rows] for name in rows[0]}


def _outputs(parts):
    """Returns the reply to a predict request in columns.

    As in TensorFlow Serving, an output that is the only one has no name.
    """
    columns = dict(sorted(server_model.joined(parts).items()))
    [content] = columns.values() if len(columns) == 1 else [columns]
    return _encoded({"outputs": content})


def _rows(parts, *, ragged):
    """Returns the reply to a predict request in rows, which have no padding."""
    rows: list[Any] = []
    for outputs in parts:
        columns: dict[str, Any] = dict(sorted(outputs.items()))
        columns |= {name: _without_padding(outputs[name]) for name in ragged}
        if len(columns) == 1:
            rows += [*next(iter(columns.values()))]
            continue
        values = zip(*columns.values(), strict=True)
        rows += [dict(zip(columns, row, strict=True)) for row in values]
    return _encoded({"predictions": rows})


def _without_padding(array):
    is_real = array != server_model.FILL.get(array.dtype.kind, 0)  # [B, W, ...]
    is_real = is_real.any(axis=tuple(range(2, array.ndim)))  # [B, W]
    widths = np.max(is_real * np.arange(1, array.shape[1] + 1), axis=1, initial=0)
    return [row[:width] for row, width in zip(array, widths, strict=True)]


def _encoded(content):
    """Returns JSON, with the digits of each data type; NaN becomes null."""

    def plain(value):
        return (
            value.decode("utf-8", "replace") if isinstance(value, bytes) else [*value]
        )

    return orjson.dumps(content, default=plain, option=orjson.OPT_SERIALIZE_NUMPY)


def read_embeddings(body: dict[str, Any], model: ServedModel) -> Job:
    """Returns the job of a request for embeddings.

    Raises:
        ValueError: the request is malformed, or asks for what the model cannot do.

    Source: platform.openai.com/docs/api-reference/embeddings.
    """
    if body.get("model", model.name) != model.name:
        raise ValueError(f"No model {body['model']!r:.80} here, only {model.name}.")
    signature = model.signatures.get(client.DEFAULT_SIGNATURE)
    if signature is None or "embedding" not in signature.outputs:
        raise ValueError(f"The model {model.name} returns no embeddings.")
    if body.get("input_type") not in (None, "document"):
        raise ValueError(
            "input_type is not supported: these are vectors of passages. For vectors "
            "of queries, call :predict with the signature_name query."
        )
    encoding = body.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise ValueError("encoding_format must be float or base64.")
    most = signature.outputs["embedding"].shape[-1]
    length = most if body.get("dimensions") is None else body["dimensions"]
    if type(length) is not int or not 1 <= length <= most:
        raise ValueError(f"dimensions must be 1 to {most}, got {length!r:.80}.")
    encode = functools.partial(
        _embeddings, name=model.name, length=length, is_base64=encoding == "base64"
    )
    items = body.get("input")
    is_ids = isinstance(items, list) and isinstance((items or [0])[0], int)
    items = [items] if is_ids or isinstance(items, str) else items
    if not isinstance(items, list) or items == [[]]:
        raise ValueError("input must be a text or a list of texts.")
    if isinstance(items[0], list):
        items = _framed(items, model)
        signature = model.signatures["ids"]
    return Job(model, signature, signature.arrays(items), encode)


def _framed(rows, model):
    """Returns the inputs of the signature `ids` for rows of word piece ids."""
    vocabulary = model.vocabulary
    has_prompt = model.task.get("query_prompt") or model.task.get("passage_prompt")
    if vocabulary is None or has_prompt or "ids" not in model.signatures:
        raise ValueError("input must be texts: the model has no word pieces of a text.")
    size = len(vocabulary)
    for number, row in enumerate(rows):
        is_list = isinstance(row, list)
        if not is_list or any(type(x) is not int or not 0 <= x < size for x in row):
            raise ValueError(
                f"input[{number}] must be a list of word piece ids below {size}."
            )
    if len(rows) > MAX_ROWS:  # Before they take memory.
        raise ValueError(f"input must have at most {MAX_ROWS} lists of ids.")
    room = model.task["max_seq_length"] - 2
    rows = [[vocabulary.cls_id, *row[:room], vocabulary.sep_id] for row in rows]
    width = max(map(len, rows))
    return {
        "input_ids": [row + [0] * (width - len(row)) for row in rows],
        "input_mask": [[1] * len(row) + [0] * (width - len(row)) for row in rows],
        "segment_ids": [[0] * width for _ in rows],
    }


def _embeddings(parts, *, name, length, is_base64):
    """Returns the reply to a request for embeddings.

    Shorter vectors are scaled to length 1, as OpenAI does. The numbers of tokens are 0:
    a SavedModel does not report them.
    """
    vectors: Any = server_model.joined(parts)["embedding"]
    if length < vectors.shape[1]:
        vectors = vectors[:, :length]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(norms, 1e-12)
    if is_base64:
        vectors = [base64.b64encode(row.tobytes()) for row in vectors.astype("<f4")]
    items = [
        {"object": "embedding", "index": index, "embedding": row}
        for index, row in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 0, "total_tokens": 0}
    return _encoded({"object": "list", "data": items, "model": name, "usage": usage})
