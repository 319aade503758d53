"""Requests that a server sends to a model before it answers others.

The first call of a signature prepares its graph, which takes many times as long as
later calls. Servers compute these requests while they load a version, so no client
waits for that. TensorFlow Serving reads them from a file in the export: TFRecords of
the message `PredictionLog` (tensorflow_serving/apis/prediction_log.proto). Its fields
are encoded here, so that an export does not need tensorflow-serving-api.
"""

import itertools
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

PATH = ("assets.extra", "tf_serving_warmup_requests")
BATCH_SIZES = (1, 4, 32)
# ASCII texts and other texts take different paths through the tokenizer.
_TEXTS = (
    "Where is the nearest station?",
    "Où est la gare ? 車站在哪裡？ Где вокзал?",
)
_MASKED = "The [MASK] is in the [MASK]."


def write(module: Any, path: str) -> None:
    """Writes the warm-up requests of a model's `signatures.TaskSignatures`."""
    import tensorflow as tf

    inputs = {
        name: {spec.name: spec for spec in function.input_signature}
        for name, function in module.functions.items()
    }
    requests = create_requests(inputs, module.predictor.task.max_seq_length)
    with tf.io.TFRecordWriter(path) as writer:
        for signature, arrays in requests:
            # model_spec, signature_name
            request = _field(1, _field(3, signature.encode()))
            for name, array in arrays.items():  # A map is a list of keys and values.
                tensor = tf.make_tensor_proto(array).SerializeToString()
                request += _field(2, _field(1, name.encode()) + _field(2, tensor))
            writer.write(_field(6, _field(1, request)))  # predict_log, request


def _field(number, content):
    """Returns a field of a message: number and type, length in base 128, and content.

    Source: protobuf.dev/programming-guides/encoding.
    """
    size, length = len(content), []
    while size > 127:
        length.append(128 + size % 128)
        size //= 128
    return bytes([8 * number + 2, *length, size]) + content


def create_requests(
    inputs: Mapping[str, Mapping[str, Any]], max_seq_length: int
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yields requests to all signatures: several batch sizes, lengths and scripts.

    `inputs` has the `tf.TensorSpec` of each input of each signature, by name. A request
    is the name of the signature and its inputs by name.
    """
    for name, specs in inputs.items():
        for batch_size in BATCH_SIZES:
            # One text is short; more are short, half as long, and of full length.
            lengths = [8, max_seq_length // 2, max_seq_length] * batch_size
            yield (
                name,
                {
                    name: _values(name, spec, lengths[:batch_size])
                    for name, spec in specs.items()
                },
            )


def _values(name, spec, lengths):
    if spec.dtype.is_integer:  # Any piece.
        value = 0 if name == "segment_ids" else 1
        return np.full([len(lengths), max(lengths)], value, np.int32)
    if spec.shape.rank == 2:
        return np.array([_TEXTS] * len(lengths), object)
    if name == "question":
        lengths = [8] * len(lengths)
    texts = [
        _of_length(_TEXTS[row // 3 % 2], length) for row, length in enumerate(lengths)
    ]
    return np.array([f"{text} {_MASKED}" for text in texts], object)


def _of_length(text, num_pieces):
    """Returns a text of about this many pieces: a word has about two."""
    words = itertools.islice(itertools.cycle(text.split()), max(1, num_pieces // 2))
    return " ".join(words)
