"""Feature extraction: reads lines, runs the encoder, writes vectors.

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
import dataclasses
import json
import os
import tempfile
from collections.abc import Iterable
from typing import Any
from typing import cast

import numpy as np

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.tasks.feature_extraction import extraction
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tokenization import vocabulary as vocabulary_module

DECIMALS = 6  # extract_features.py, 2018: round(float(x), 6).


def run(
    options: feature_extraction_options.ExtractFeaturesOptions,
) -> str:
    """Writes the vectors of every line of a file; returns a report.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the input file is empty or not UTF-8, or as for `Extractor`.
    """
    if options.input_file.lower().endswith((".csv", ".tsv", ".jsonl", ".parquet")):
        raise ValueError(
            f"{options.input_file} is a table; expected one text per line. Save the "
            "column with the texts as a .txt file, or pass it to bert_tf.embed."
        )
    # Reads the file once in advance, so that errors in it are reported before any work.
    num_lines = sum(1 for _ in files.read_lines(options.input_file))
    if not num_lines:
        raise ValueError(f"{options.input_file} is empty; expected one text per line.")
    with locks.output_file(options.output_file):
        extractor = extraction.Extractor(options)
        lines = extraction.read_examples(options.input_file)
        known = cast(
            feature_extraction_options.ExtractFeaturesOptions, extractor.options
        )
        texts = _reported(extractor.extract_each(lines), num_lines)
        write(texts, known, extractor.vocabulary)
    return f"Vectors of {num_lines} lines are in {options.output_file}."


def embed(
    source: str,
    texts: Any,
    *,
    dtype: str = "float32",
    backend: str = backends.TENSORFLOW,
    batch_size: int = 32,
    normalize: bool | None = None,
    do_lower_case: bool | None = None,
) -> np.ndarray:
    """Returns one vector per text, float32 [N, H].

    A sentence encoder, or the run of a bi-encoder, says how its vectors are pooled and
    whether they have length 1; its default prompt is put before each text. For any
    other encoder, the vector is the mean over the word pieces, scaled to length 1.
    Texts longer than the model's limit are truncated. A literal [MASK], [SEP] or [CLS]
    in a text is split like any other text, as in 2018; sentence-transformers reads it
    as a special token.

    Each call loads the model. For several calls use `bert_tf.load(source).embed`.

    Args:
        source: a checkpoint in any format (folder or file), the name of a released
            model, or the output_dir of a run.
        texts: N texts, or pairs (text, second text), as a list or another iterable.
            The vectors are computed in batches of similar length and returned in the
            order of the texts.
        dtype: of the computation: "float32", "bfloat16" or "float16", or with OpenVINO
            "int8" weights. The vectors are always float32.
        backend: "tensorflow", or "openvino" for Intel's library, which is faster on
            Intel processors (`pip install "bert_tf[openvino]"`).
        batch_size: texts of 128 word pieces per batch; a batch of shorter texts
            contains more of them, and one of longer texts fewer.
        normalize: whether to scale the vectors to length 1. None: as described above.
        do_lower_case: whether to lowercase the texts. None: as the checkpoint says, or
            else True, unless the vocabulary has cased pieces.

    Raises:
        OSError: a file cannot be read.
        ValueError: a text is wrong, or `source` is not a complete encoder.

    Example:
        >>> bert_tf.embed("bert-base-uncased", ["Rain.", "Sun."]).shape
        (2, 768)
    """
    items = given_data.read(texts, "a list of texts")
    lines = [_line(index, item) for index, item in enumerate(items)]
    backends.check(backend, backends.policy_of(dtype))
    batch_size = fine_tuning_predictor.checked_count(batch_size, "batch_size")
    start = starting_point.find(source, do_lower_case=do_lower_case)
    # `find` was given a checkpoint, so it returns a source.
    opened = cast(source_module.Source, start.source)
    text = opened.encoder_text
    if text.output_activation is not None:
        raise ValueError(
            f"{source} scores pairs of texts and has no vectors for single texts; "
            "expected an encoder."
        )
    text = dataclasses.replace(
        text,
        pooling=text.pooling or "mean",
        normalize=text.normalize is not False if normalize is None else normalize,
    )
    length = text.max_seq_length or start.config.max_position_embeddings
    extractor = extraction.Extractor(
        feature_extraction_options.ExtractionOptions(
            init_checkpoint=source,
            pooling=feature_extraction_options.OF_CHECKPOINT,
            max_seq_length=length,
            batch_size=batch_size,
            dtype=dtype,
            backend=backend,
        ),
        start=dataclasses.replace(start, source=dataclasses.replace(opened, text=text)),
    )
    return extractor.embed(lines)


def _line(index, item):
    place = f"text {index}"
    if isinstance(item, str):
        return extraction.TextLine(text_a=item, place=place)
    is_pair = isinstance(item, tuple | list) and len(item) == 2
    if not is_pair or not all(isinstance(text, str) for text in item):
        raise ValueError(
            f"Text {index} is {item!r:.60}; expected a string, or (text, second text)."
        )
    return extraction.TextLine(text_a=item[0], text_b=item[1], place=place)


def _reported(texts, total):
    for number, extracted in enumerate(texts, start=1):
        yield extracted
        progress_module.report("extract", number, total, unit="lines")


def write(
    texts: Iterable[extraction.Extracted],
    options: feature_extraction_options.ExtractFeaturesOptions,
    vocabulary: vocabulary_module.Vocabulary,
) -> None:
    """Writes the vectors of texts; the file is whole or absent.

    Args:
        texts: consumed as they are written.
        options: output_file, output_format, layers and max_seq_length are used.
        vocabulary: for the tokens in JSON lines.

    Raises:
        OSError: the file cannot be written.
    """
    if options.output_format == "npz":
        _write_npz(texts, options)
        return
    with files.complete_or_absent(options.output_file) as file:
        for index, text in enumerate(texts):
            file.write(_json_line(text, index, options.layers, vocabulary))


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
                "token": vocabulary.tokens[token_id],
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


def _write_npz(texts, options):
    path = options.output_file
    folder = None if files.is_remote(path) else os.path.dirname(os.path.abspath(path))
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(files.complete_or_absent(path, "wb"))
        # An array's header has its number of rows, which is known only at the end.
        # Until then, the rows are in an unnamed file.
        spools, first_rows, starts = {}, {}, [0]
        for text in texts:
            starts.append(starts[-1] + len(text.input_ids))
            for name, rows in _rows(text, options.max_seq_length).items():
                if name not in spools:
                    spools[name] = stack.enter_context(
                        tempfile.TemporaryFile(dir=folder)
                    )
                    first_rows[name] = rows
                spools[name].write(rows.tobytes())
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
