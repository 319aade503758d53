"""Requests that TensorFlow Serving sends to a model before it answers others.

The first call of a signature prepares its graph, which takes many times as long as
later calls. TensorFlow Serving replays the requests in
`assets.extra/tf_serving_warmup_requests` while it loads a version, so no client waits
for that. The file has TFRecords of the message `PredictionLog`
(tensorflow_serving/apis/prediction_log.proto). Its few fields are encoded here, so that
an export does not need tensorflow-serving-api.
"""

import itertools
from typing import Any

import tensorflow as tf

from bert_tf.serving import signatures

FILE = "tf_serving_warmup_requests"
BATCH_SIZES = (1, 4, 32)
# Texts of ASCII characters and other texts take different ways through the tokenizer.
_TEXTS = (
    "Where is the nearest station?",
    "Où est la gare ? 車站在哪裡？ Где вокзал?",
)
_MASKED = "The [MASK] is in the [MASK]."
# Numbers of the protocol buffers' fields.
_PREDICT_LOG = 6  # Of PredictionLog.
_REQUEST = 1  # Of PredictLog.
_MODEL_SPEC, _INPUTS = 1, 2  # Of PredictRequest.
_SIGNATURE_NAME = 3  # Of ModelSpec.
_KEY, _VALUE = 1, 2  # Of an entry of a map.
_LENGTH_DELIMITED = 2  # Wire type.


def write(module: signatures.TaskSignatures, path: str) -> None:
    """Writes the warm-up requests of a model.

    Args:
        module: the model's signatures.
        path: the file to write.
    """
    with tf.io.TFRecordWriter(path) as writer:
        for name, inputs in requests_of(module):
            writer.write(prediction_log(name, inputs))


def requests_of(
    module: signatures.TaskSignatures,
) -> list[tuple[str, dict[str, tf.Tensor]]]:
    """Returns requests to all signatures: several batch sizes, lengths and scripts.

    Returns:
        For each request the name of the signature and its inputs by name.
    """
    return [
        (
            name,
            {
                spec.name: _values(module.predictor, spec, batch_size)
                for spec in function.input_signature
            },
        )
        for name, function in module.functions.items()
        for batch_size in BATCH_SIZES
    ]


def prediction_log(signature: str, inputs: dict[str, tf.Tensor]) -> bytes:
    """Returns a serialized `PredictionLog` of a request.

    Args:
        signature: name of the signature.
        inputs: tensors by name.
    """
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


def _values(predictor: Any, spec: tf.TensorSpec, batch_size: int) -> tf.Tensor:
    longest = predictor.task.max_seq_length
    # A single text is short; more texts are short, half as long, and of full length.
    lengths = [(8, longest // 2, longest)[row % 3] for row in range(batch_size)]
    if spec.dtype != tf.string:
        return tf.constant(_ids(predictor.vocabulary, spec.name, lengths), spec.dtype)
    if spec.shape.rank == 2:
        return tf.constant([_TEXTS] * batch_size)
    if spec.name == "question":
        lengths = [8] * batch_size
    texts = [
        _of_length(_TEXTS[row // 3 % 2], length) for row, length in enumerate(lengths)
    ]
    if predictor.task.KIND == "pretraining":
        texts = [f"{text} {_MASKED}" for text in texts]
    return tf.constant(texts)


def _of_length(text, num_pieces):
    """Returns a text of about this many pieces: a word has about two."""
    words = itertools.islice(itertools.cycle(text.split()), max(1, num_pieces // 2))
    return " ".join(words)


def _ids(vocabulary, name, lengths):
    """Returns rows of [CLS], other pieces and [SEP], padded with 0."""
    inner = vocabulary.unk_id
    rows = {
        "input_ids": [
            [vocabulary.cls_id, *[inner] * max(length - 2, 0), vocabulary.sep_id]
            for length in lengths
        ],
        "input_mask": [[1] * max(length, 2) for length in lengths],
        "segment_ids": [[0] * max(length, 2) for length in lengths],
    }[name]
    width = max(map(len, rows))
    return [row + [0] * (width - len(row)) for row in rows]


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
