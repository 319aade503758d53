"""The file of warm-up requests in an export, in TensorFlow Serving's format.

It has TFRecords of the message `PredictionLog`
(tensorflow_serving/apis/prediction_log.proto). The few fields that we need, all of them
length-delimited, are encoded and decoded here, so that neither an export nor our server
needs tensorflow-serving-api. A file that a user wrote may have other fields and logs,
which are skipped.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

PATH = ("assets.extra", "tf_serving_warmup_requests")
# Numbers of the protocol buffers' fields.
_PREDICT_LOG = 6  # Of PredictionLog.
_REQUEST = 1  # Of PredictLog.
_MODEL_SPEC, _INPUTS = 1, 2  # Of PredictRequest.
_SIGNATURE_NAME = 3  # Of ModelSpec.
_KEY, _VALUE = 1, 2  # Of an entry of a map.
# Wire types. Fixed numbers have the given number of bytes.
_VARINT, _LENGTH_DELIMITED = 0, 2
_FIXED = {1: 8, 5: 4}
_DEFAULT_SIGNATURE = "serving_default"


def read(path: str) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Returns the requests of a file: signature, and inputs by name.

    Raises:
        ValueError: the file is damaged.
    """
    import tensorflow as tf

    try:
        return [
            _request(content)
            for record in tf.data.TFRecordDataset(path).as_numpy_iterator()
            for number, content in _fields(record)
            if number == _PREDICT_LOG
        ]
    except (tf.errors.OpError, ValueError, LookupError) as error:
        raise ValueError(f"{path} is damaged; export the model again.") from error


def prediction_log(signature: str, inputs: dict[str, Any]) -> bytes:
    """Returns a serialized `PredictionLog` of a request.

    Args:
        signature: name of the signature.
        inputs: tensors by name.
    """
    import tensorflow as tf

    entries = b"".join(
        _field(
            _INPUTS,
            _field(_KEY, name.encode())
            + _field(_VALUE, tf.make_tensor_proto(tensor).SerializeToString()),
        )
        for name, tensor in inputs.items()
    )
    spec = _field(_MODEL_SPEC, _field(_SIGNATURE_NAME, signature.encode()))
    return _field(_PREDICT_LOG, _field(_REQUEST, spec + entries))


def _request(log):
    import tensorflow as tf
    from google.protobuf import message
    from tensorflow.core.framework import tensor_pb2

    request = dict(_fields(log))[_REQUEST]
    signature, inputs = _DEFAULT_SIGNATURE, {}
    for number, content in _fields(request):
        if number == _MODEL_SPEC:
            name = dict(_fields(content)).get(_SIGNATURE_NAME, b"")
            signature = name.decode() or _DEFAULT_SIGNATURE
        if number != _INPUTS:
            continue
        fields = dict(_fields(content))
        try:
            tensor = tensor_pb2.TensorProto.FromString(fields[_VALUE])
        except message.DecodeError as error:
            raise ValueError("A tensor is damaged.") from error
        inputs[fields[_KEY].decode()] = tf.make_ndarray(tensor)
    return signature, inputs


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields number and content of the length-delimited fields of a protocol buffer."""
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        wire_type = key & 7
        if wire_type in _FIXED:
            place += _FIXED[wire_type]
        elif wire_type in (_VARINT, _LENGTH_DELIMITED):
            value, place = _read_varint(data, place)
            if wire_type == _LENGTH_DELIMITED:
                yield key >> 3, data[place : place + value]
                place += value
        else:
            raise ValueError(f"Expected a protocol buffer, got the key {key}.")
    if place > len(data):
        raise ValueError("A field is longer than the message.")


def _read_varint(data, place):
    """Returns a number and the position after it."""
    value = shift = 0
    while data[place] > 0x7F:
        value |= (data[place] & 0x7F) << shift
        shift += 7
        place += 1
    return value | data[place] << shift, place + 1


def _field(number: int, content: bytes) -> bytes:
    """Returns a length-delimited field of a protocol buffer."""
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Returns a number in groups of 7 bits, the lowest first."""
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
