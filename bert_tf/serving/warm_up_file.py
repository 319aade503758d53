"""The file of warm-up requests that an export brings, in TensorFlow Serving's format.

It has TFRecords of the message `PredictionLog`
(tensorflow_serving/apis/prediction_log.proto). Its few fields, all of them
length-delimited, are encoded and decoded here, so that neither an export nor our server
needs tensorflow-serving-api.
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
_LENGTH_DELIMITED = 2  # Wire type.


def read(path: str) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Returns the requests of a file: signature, and inputs by name.

    Raises:
        ValueError: the file is damaged.
    """
    import tensorflow as tf

    try:
        return [
            _request(record)
            for record in tf.data.TFRecordDataset(path).as_numpy_iterator()
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


def _request(record):
    import tensorflow as tf
    from google.protobuf import message
    from tensorflow.core.framework import tensor_pb2

    request = dict(_fields(dict(_fields(record))[_PREDICT_LOG]))[_REQUEST]
    signature, inputs = "", {}
    for number, content in _fields(request):
        fields = dict(_fields(content))
        if number == _MODEL_SPEC:
            signature = fields[_SIGNATURE_NAME].decode()
            continue
        try:
            tensor = tensor_pb2.TensorProto.FromString(fields[_VALUE])
        except message.DecodeError as error:
            raise ValueError("A tensor is damaged.") from error
        inputs[fields[_KEY].decode()] = tf.make_ndarray(tensor)
    return signature, inputs


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields number and content of the fields of a protocol buffer."""
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        length, place = _read_varint(data, place)
        if key & 7 != _LENGTH_DELIMITED:
            raise ValueError(f"Expected a length-delimited field, got key {key}.")
        yield key >> 3, data[place : place + length]
        place += length


def _read_varint(data, place):
    """Returns a number and the place behind it."""
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
