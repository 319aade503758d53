"""What TensorFlow Serving, and `bert_tf serve`, expect of an export.

**Versions.** A model has a folder, such as `models/topics`, and each of its versions a
folder in it whose name is a number, such as `models/topics/1`. TensorFlow Serving
ignores folders with other names.

**Warm-up requests.** The first call of a signature prepares its graph, which takes many
times as long as later calls. Servers compute these requests while they load a version,
so no client waits for that. TensorFlow Serving reads them from a file in the export:
TFRecords of the message `PredictionLog` (tensorflow_serving/apis/prediction_log.proto).
Its fields are encoded here, so that an export does not need tensorflow-serving-api.
"""

import itertools
import os
import re
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf import files

MODEL_FILE = "saved_model.pb"
_LARGEST = 2**63 - 1
# Names that are meant as a version: v2, 1.0, 2026-01-31.
_LIKE_A_VERSION = re.compile(r"[vV]?[+-]?\d[\d._-]*")
EXTRA_FOLDER = "assets.extra"  # For files that the graph does not read.
WARM_UP_FILE = "tf_serving_warmup_requests"  # In that folder.
BATCH_SIZES = (1, 4, 32)
# ASCII texts and other texts take different paths through the tokenizer.
_TEXTS = (
    "Where is the nearest station?",
    "Où est la gare ? 車站在哪裡？ Где вокзал?",
)
_MASKED = "The [MASK] is in the [MASK]."


def next_folder(export_dir: str, model_file: str = MODEL_FILE) -> str:
    """Returns the folder of the version to write.

    It is `export_dir`, if that is the folder of a version, such as `models/topics/1`,
    or else the next number in the folder of a model, whose versions have `model_file`.

    Raises:
        ValueError: the folder has a name that TensorFlow Serving ignores.
    """
    export_dir = export_dir.rstrip("/")
    name = os.path.basename(export_dir)
    if _is_number(name):
        return export_dir
    if _LIKE_A_VERSION.fullmatch(name):
        raise ValueError(
            f"{export_dir}: {name!r} is not a version of TensorFlow Serving; expected "
            "a whole number, as in models/topics/1, or the folder of the model."
        )
    return f"{export_dir}/{max(versions_in(export_dir, model_file), default=0) + 1}"


def latest_folder(export_dir: str) -> str:
    """Returns the folder of a SavedModel, or that of a model's highest version.

    Raises:
        FileNotFoundError: there is none.
    """
    folder = export_dir.rstrip("/")
    numbers = versions_in(folder)
    folder = f"{folder}/{numbers[-1]}" if numbers else folder
    if not files.exists(os.path.join(folder, MODEL_FILE)):
        raise FileNotFoundError(
            f"{export_dir} contains no {MODEL_FILE} and no version of a model; "
            "expected a folder written by bert_tf export."
        )
    return folder


def versions_in(folder: str, model_file: str = MODEL_FILE) -> list[int]:
    """Returns the versions in the folder of a model, in ascending order."""
    if not files.is_folder(folder):
        return []
    names = (entry.rstrip("/") for entry in files.list_folder(folder))
    return sorted(
        int(name)
        for name in names
        if _is_number(name) and files.exists(f"{folder}/{name}/{model_file}")
    )


def _is_number(name):
    is_number = name.isascii() and name.isdigit()
    return is_number and str(int(name)) == name and int(name) <= _LARGEST


def write_warm_up(module: Any, folder: str) -> None:
    """Writes the warm-up requests of a model's `signatures.TaskSignatures`."""
    import tensorflow as tf

    path = os.path.join(folder, EXTRA_FOLDER, WARM_UP_FILE)
    inputs = {
        name: {spec.name: spec for spec in function.input_signature}
        for name, function in module.functions.items()
    }
    requests = warm_up_requests(inputs, module.predictor.task.max_seq_length)
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


def warm_up_requests(
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
