"""The vectors of a corpus on disk, with what made them.

The file is one of safetensors: a tensor `embeddings` float32 [N, H], and as metadata
the checkpoint, its weights' SHA-256 and that of the corpus. Vectors of another model
or of other passages are never taken for these.
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np

from bert_tf import files
from bert_tf.tasks.retrieval import corpus as corpus_module

VECTORS_FILE = "passage_embeddings.safetensors"
PASSAGES_FILE = "passages.jsonl"
TENSOR = "embeddings"
ROWS_PER_BLOCK = 8192
_LENGTH = struct.Struct("<Q")  # Before the header: its bytes.
_BYTES_PER_FLOAT = 4


class PassageIndex:
    """Vectors in a file, read a block at a time.

    Args:
        path: the file.

    Attributes:
        shape: (N, H).
        made_by: dict of what `fingerprint` returned when it was made.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such file, or is cut off.
    """

    def __init__(self, path: str):
        self._path = path
        try:
            with files.open_file(path, "rb") as file:
                (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                header = json.loads(file.read(length))
            self.shape = tuple(header[TENSOR]["shape"])
            self.made_by = header["__metadata__"]
        except (struct.error, ValueError, KeyError, TypeError, MemoryError):
            raise self._damaged() from None
        self._start = _LENGTH.size + length
        if files.size(path) != self._start + _size(self.shape):
            raise self._damaged()

    def __len__(self):
        return self.shape[0]

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yields (number of the first row, float32 [8192 or the rest, H])."""
        num_rows, width = self.shape
        with files.open_file(self._path, "rb") as file:
            file.seek(self._start)
            for first in range(0, num_rows, ROWS_PER_BLOCK):
                count = min(ROWS_PER_BLOCK, num_rows - first)
                data = file.read(count * width * _BYTES_PER_FLOAT)
                yield first, np.frombuffer(data, "<f4").reshape(count, width)

    def _damaged(self):
        return ValueError(
            f"{self._path} is damaged or no file of vectors; remove it to have it made "
            "anew."
        )


def fingerprint(model, task, vocabulary, *, checkpoint: str, corpus) -> dict[str, str]:
    """Returns what the vectors of a corpus depend on.

    Args:
        model: built `BertBiEncoder`.
        task: `task.Task`.
        vocabulary: `Vocabulary`.
        checkpoint: where its weights are from, for the reader.
        corpus: `corpus.Corpus`.
    """
    digest = hashlib.sha256()
    for weight in model.weights:
        digest.update(np.ascontiguousarray(weight.numpy()).data)
    return {
        "checkpoint": checkpoint,
        "weights_sha256": digest.hexdigest(),
        "corpus": corpus.path,
        "corpus_sha256": corpus.fingerprint,
        "vocabulary": str(vocabulary.fingerprint),
        "task": json.dumps(task.to_dict(), sort_keys=True),
    }


def is_made_by(folder: str, made_by: dict[str, str]) -> bool:
    """Returns whether a folder has the vectors of this model and these passages."""
    path = os.path.join(folder, VECTORS_FILE)
    if not files.exists(path) or not files.exists(os.path.join(folder, PASSAGES_FILE)):
        return False
    try:
        found = PassageIndex(path).made_by
    except ValueError:
        return False  # It is made anew.
    names = ("weights_sha256", "corpus_sha256", "vocabulary", "task")
    return all(found.get(name) == made_by[name] for name in names)


def write(
    folder: str, corpus: corpus_module.Corpus, blocks: Iterable[np.ndarray], **about
) -> None:
    """Writes passages and vectors, a block at a time.

    The vectors come last, and those that were there go first: wherever this is
    interrupted, there are no vectors beside passages that are not theirs.

    Args:
        folder: path of a folder; is made.
        corpus: N passages.
        blocks: float32 [rows, H] for all passages in order.
        **about: `width`, H; `made_by`, what `fingerprint` returned.

    Raises:
        OSError: a file cannot be written.
    """
    shape = (len(corpus), about["width"])
    header = {
        "__metadata__": about["made_by"],
        TENSOR: {"dtype": "F32", "shape": shape, "data_offsets": [0, _size(shape)]},
    }
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # So that the numbers are aligned.
    path = os.path.join(folder, VECTORS_FILE)
    if files.exists(path):
        files.remove(path)
    with files.complete_or_absent(os.path.join(folder, PASSAGES_FILE)) as file:
        for own_id, passage in zip(corpus.ids, corpus.passages, strict=True):
            record = {"id": own_id, "passage": passage}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    with files.complete_or_absent(path, "wb") as file:
        file.write(_LENGTH.pack(len(text)) + text)
        for block in blocks:
            file.write(np.ascontiguousarray(block, "<f4").tobytes())


def _size(shape):
    return shape[0] * shape[1] * _BYTES_PER_FLOAT
