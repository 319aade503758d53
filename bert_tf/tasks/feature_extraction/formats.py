"""Files of extracted vectors: JSON lines, npz, HDF5, TFRecord.

Texts are written as they come, so that memory does not grow with the file. An npz or h5
file holds arrays of all texts end to end:

    vectors            float32 [N, D], a row a text, with pooling;
                       float32 [pieces, L, H] without.
    starts             int64 [N + 1]: text i has the rows starts[i] to starts[i + 1] of
                       the arrays that have a row a piece.
    input_ids          int32 [pieces], with [CLS] and [SEP].
    attention_weights  float32 [pieces, L, heads, max_seq_length], on request; 0 beyond
                       the text's end.
    layers             int32 [L], as asked for.

A TFRecord file has an Example a text: `line_index`, `input_ids`, `vector` or `vectors`
(flat [S, L, H]), and `attention_weights` (flat [S, L, heads, S]).
"""

import contextlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from collections.abc import Iterator

import numpy as np

from bert_tf import files
from bert_tf.data import encoding as data_encoding
from bert_tf.data import schema as schema_module
from bert_tf.tasks.feature_extraction import extraction
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tasks.feature_extraction import predictions

Write = Callable[[extraction.Extracted], None]
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # The same vectors give the same bytes.


@contextlib.contextmanager
def open_writer(
    options: feature_extraction_options.ExtractFeaturesOptions, vocabulary
) -> Iterator[Write]:
    """Yields a function that writes one text's vectors; the file is whole or absent.

    Args:
        options: of them output_file, output_format, layers and max_seq_length.
        vocabulary: `Vocabulary`, for the tokens of JSON lines.

    Raises:
        OSError: the file cannot be written.
        ValueError: the format needs a local file, and a remote one is asked for.
    """
    with _WRITERS[options.output_format](options, vocabulary) as write:
        yield write


@contextlib.contextmanager
def _json_lines(options, vocabulary):
    index = -1

    def write(extracted):
        nonlocal index
        index += 1
        file.write(
            predictions.json_line(
                extracted, index=index, layers=options.layers, vocabulary=vocabulary
            )
        )

    with files.complete_or_absent(options.output_file) as file:
        yield write


@contextlib.contextmanager
def _tfrecord(options, vocabulary):
    index = -1

    def write(extracted):
        nonlocal index
        index += 1
        columns = {"line_index": np.array([index]), "input_ids": extracted.input_ids}
        for name in ("vector", "vectors", "attention_weights"):
            if getattr(extracted, name) is not None:
                columns[name] = getattr(extracted, name).ravel()
        rows = {name: values[None] for name, values in columns.items()}
        data, _ = data_encoding.framed_records(schema_module.of_arrays(columns), rows)
        file.write(data)

    with files.complete_or_absent(options.output_file, "wb") as file:
        yield write


@contextlib.contextmanager
def _npz(options, vocabulary):
    path = options.output_file
    folder = None if files.is_remote(path) else os.path.dirname(os.path.abspath(path))
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(files.complete_or_absent(path, "wb"))
        # Nobody knows the number of rows, which comes first, before the end.
        spools = {}

        def append(name, rows):
            if name not in spools:
                unnamed = stack.enter_context(tempfile.TemporaryFile(dir=folder))
                spools[name] = _Spool(unnamed, rows)
            spools[name].append(rows)

        arrays = _Arrays(options, append)
        yield arrays.write
        arrays.finish()
        with zipfile.ZipFile(file, "w") as archive:
            for name, spool in spools.items():
                spool.copy_into(archive, name)


@contextlib.contextmanager
def _hdf5(options, vocabulary):
    import h5py

    if files.is_remote(options.output_file):
        raise ValueError(
            f"--output_file={options.output_file}: HDF5 is written to local files "
            "only; choose one, or --output_format=npz."
        )
    with files.complete_or_absent_path(options.output_file) as temporary:
        with h5py.File(temporary, "w") as file:

            def append(name, rows):
                if name not in file:
                    shape = rows.shape[1:]
                    file.create_dataset(
                        name,
                        shape=(0, *shape),
                        maxshape=(None, *shape),
                        dtype=rows.dtype,
                    )
                dataset = file[name]
                dataset.resize(len(dataset) + len(rows), axis=0)
                if len(rows):
                    dataset[-len(rows) :] = rows

            arrays = _Arrays(options, append)
            yield arrays.write
            arrays.finish()


class _Arrays:
    """Texts as rows of arrays, each array appended to as they come.

    Args:
        options: `ExtractFeaturesOptions`.
        append: takes the name of an array and rows for its end.
    """

    def __init__(self, options, append):
        self._options = options
        self._append = append
        self._num_pieces = 0

    def write(self, extracted):
        if self._num_pieces == 0:
            self._append("starts", np.zeros(1, np.int64))
        self._num_pieces += len(extracted.input_ids)
        self._append("starts", np.array([self._num_pieces], np.int64))
        self._append("input_ids", extracted.input_ids)
        if extracted.vector is not None:
            self._append("vectors", extracted.vector[None])
        else:
            self._append("vectors", extracted.vectors)
        weights = extracted.attention_weights
        if weights is not None:
            missing = self._options.max_seq_length - weights.shape[-1]
            widths = [(0, 0)] * (weights.ndim - 1) + [(0, missing)]
            self._append("attention_weights", np.pad(weights, widths))

    def finish(self):
        self._append("layers", np.array(self._options.layers, np.int32))


class _Spool:
    """Rows of one array in a file without a name, until their number is known."""

    def __init__(self, file, rows):
        self._file = file
        self._dtype = rows.dtype
        self._row_shape = rows.shape[1:]
        self._num_rows = 0

    def append(self, rows):
        self._file.write(np.ascontiguousarray(rows).tobytes())
        self._num_rows += len(rows)

    def copy_into(self, archive, name):
        """Writes the array as a member of an npz file."""
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._num_rows, *self._row_shape),
        }
        member = zipfile.ZipInfo(f"{name}.npy", _ZIP_EPOCH)
        self._file.seek(0)
        with archive.open(member, "w", force_zip64=True) as target:
            np.lib.format.write_array_header_1_0(target, header)
            shutil.copyfileobj(self._file, target, 1 << 20)


_WRITERS = {"jsonl": _json_lines, "npz": _npz, "h5": _hdf5, "tfrecord": _tfrecord}
