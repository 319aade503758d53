"""Files of extracted vectors: JSON lines and npz.

Texts are written as they come, so memory does not grow with the file. An npz file holds
the arrays of all texts, concatenated:

    vectors            float32 [N, D], one row per text, with pooling;
                       float32 [pieces, L, H] without.
    starts             int64 [N + 1]: text i has the rows starts[i] to starts[i + 1] of
                       the arrays with one row per piece.
    input_ids          int32 [pieces], with [CLS] and [SEP].
    attention_weights  float32 [pieces, L, heads, max_seq_length], if requested; 0 after
                       the end of the text.
    layers             int32 [L], in the requested order.
"""

import contextlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.tasks.feature_extraction import extraction
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tokenization import vocabulary as vocabulary_module

Write = Callable[[extraction.Extracted], object]
DECIMALS = 6  # extract_features.py, 2018: round(float(x), 6).


@contextlib.contextmanager
def open_writer(
    options: feature_extraction_options.ExtractFeaturesOptions,
    vocabulary: vocabulary_module.Vocabulary,
) -> Iterator[Write]:
    """Yields a function that writes one text's vectors; the file is whole or absent.

    Args:
        options: output_file, output_format, layers and max_seq_length are used.
        vocabulary: for the tokens in JSON lines.

    Raises:
        OSError: the file cannot be written.
    """
    if options.output_format == "npz":
        with _npz(options) as write:
            yield write
        return
    numbers = itertools.count()
    with files.complete_or_absent(options.output_file) as file:
        yield lambda extracted: file.write(
            _json_line(extracted, next(numbers), options.layers, vocabulary)
        )


def _json_line(extracted, index, layers, vocabulary):
    """Returns the line of one text, with its line end.

    Without pooling it is the release's: `linex_index` (its spelling), and `features`
    with `token` and `layers` (`index` as in `layers`, and `values`) for every piece.
    With pooling there are `values` instead of features. Attention weights follow as
    `attention_weights`: for each layer `index` and `heads` [N][from][to].
    """
    record: dict[str, Any] = {"linex_index": index}
    if extracted.vector is not None:
        record["values"] = rounded(extracted.vector)
    elif extracted.vectors is not None:
        record["features"] = [
            {
                "token": vocabulary.token_of(int(token_id)),
                "layers": [
                    {"index": layer, "values": values}
                    for layer, values in zip(layers, rows, strict=True)
                ],
            }
            for token_id, rows in zip(
                extracted.input_ids, rounded(extracted.vectors), strict=True
            )
        ]
    if extracted.attention_weights is not None:
        by_layer = extracted.attention_weights.transpose(1, 2, 0, 3)  # [L, N, S, S]
        record["attention_weights"] = [
            {"index": layer, "heads": heads}
            for layer, heads in zip(layers, rounded(by_layer), strict=True)
        ]
    return json.dumps(record) + "\n"


def rounded(values: np.ndarray) -> list:
    """Returns float32 values as lists of Python floats with six decimals.

    The product of a float32 and 10^6 has at most 38 significant bits, so it is exact in
    float64, and the result equals that of Python's `round`, even for halves.
    """
    return np.round(values.astype(np.float64), DECIMALS).tolist()


@contextlib.contextmanager
def _npz(options):
    path = options.output_file
    folder = None if files.is_remote(path) else os.path.dirname(os.path.abspath(path))
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(files.complete_or_absent(path, "wb"))
        # An array's header has its number of rows, which is known only at the end.
        # Until then, the rows are in an unnamed file.
        spools, first_rows, starts = {}, {}, [0]

        def write(extracted):
            starts.append(starts[-1] + len(extracted.input_ids))
            for name, rows in _rows(extracted, options.max_seq_length).items():
                if name not in spools:
                    spools[name] = stack.enter_context(
                        tempfile.TemporaryFile(dir=folder)
                    )
                    first_rows[name] = rows
                spools[name].write(rows.tobytes())

        yield write
        arrays: dict[str, Any] = {
            "starts": np.array(starts, np.int64),
            "layers": np.array(options.layers, np.int32),
        }
        for name, spool in spools.items():
            spool.flush()
            values = np.memmap(spool, first_rows[name].dtype, "r")
            arrays[name] = values.reshape(-1, *first_rows[name].shape[1:])
        np.savez(file, **arrays)


def _rows(extracted, max_seq_length):
    """Returns one text's rows of each array."""
    is_pooled = extracted.vector is not None
    rows = {
        "input_ids": extracted.input_ids,
        "vectors": extracted.vector[None] if is_pooled else extracted.vectors,
    }
    weights = extracted.attention_weights
    if weights is not None:
        missing = max_seq_length - weights.shape[-1]
        widths = [(0, 0)] * (weights.ndim - 1) + [(0, missing)]
        rows["attention_weights"] = np.pad(weights, widths)
    return rows
