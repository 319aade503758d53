"""Requests that a server sends to a model before it answers others.

The first call of a signature prepares its graph, which takes many times as long as
later calls. Servers replay these requests while they load a version, so no client waits
for that. See `warm_up_file`.
"""

import itertools
from typing import Any

import tensorflow as tf

from bert_tf.serving import signatures
from bert_tf.serving import warm_up_file

BATCH_SIZES = (1, 4, 32)
# ASCII texts and other texts take different paths through the tokenizer.
_TEXTS = (
    "Where is the nearest station?",
    "Où est la gare ? 車站在哪裡？ Где вокзал?",
)
_MASKED = "The [MASK] is in the [MASK]."


def write(module: signatures.TaskSignatures, path: str) -> None:
    """Writes the warm-up requests of a model.

    Args:
        module: the model's signatures.
        path: the file to write.
    """
    with tf.io.TFRecordWriter(path) as writer:
        for name, inputs in create_requests(module):
            writer.write(warm_up_file.prediction_log(name, inputs))


def create_requests(
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
