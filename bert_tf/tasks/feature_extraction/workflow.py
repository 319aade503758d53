"""Feature extraction: reads lines, runs the encoder, writes vectors.

Texts are written as they come, so memory does not grow with the file. An npz file holds
the arrays of all texts, concatenated:

    vectors    float32 [N, D], one row per text, with pooling;
               float32 [pieces, L, H] without.
    starts     int64 [N + 1]: text i has the rows starts[i] to starts[i + 1] of
               the arrays with one row per piece.
    input_ids  int32 [pieces], with [CLS] and [SEP].
    layers     int32 [L], in the requested order.

Shape letters: B batch, S sequence, L extracted layers, H hidden, D = L H, N texts.
"""

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import re
import tempfile
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import packing
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pooling as pooling_module
from bert_tf.tasks.feature_extraction import options as feature_extraction_options
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)

DECIMALS = 6  # extract_features.py, 2018: round(float(x), 6).
_PAIR = re.compile(r"^(.*) \|\|\| (.*)$")
# Texts are sorted by length within groups of this many batches. Without pooling, the
# vectors of all pieces in a group are in memory at once, so groups are smaller.
BATCHES_SORTED_POOLED = 16
BATCHES_SORTED = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextLine:
    """One text, or two that form one sequence."""

    text_a: str
    text_b: str | None = None
    place: str = ""  # "file:line", for error messages.


def read_examples(path: str) -> Iterator[TextLine]:
    """Yields the texts of a file, one per line; an empty line is a text too.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not UTF-8; the message has file and line.

    Source: read_examples of extract_features.py, 2018.
    """
    for number, line in enumerate(files.read_lines(path), start=1):
        text_a, text_b = divided(line)
        yield TextLine(text_a=text_a, text_b=text_b, place=f"{path}:{number}")


def divided(line: str) -> tuple[str, str | None]:
    """Returns a line's text and None, or both texts of `A ||| B`.

    As in 2018, the last ` ||| ` separates them.
    """
    line = line.strip()
    match = _PAIR.match(line)
    return (match[1], match[2]) if match else (line, None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extracted:
    """What the encoder computes for one text."""

    input_ids: np.ndarray  # int32 [S], with [CLS] and [SEP] and without padding.
    vectors: np.ndarray  # float32 [S, L, H], or [D] with pooling.


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Record(task_record.TaskRecord):
    KIND = "encoder"

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> bert.BertModel:
        return bert.BertModel(config, dtype=dtype)


class Extractor(fine_tuning_predictor.Predictor):
    """Extracts vectors with a checkpoint's encoder.

    Args:
        options: what to extract.

    Raises:
        OSError: a file cannot be read.
        ValueError: the checkpoint lacks weights, a file that describes it, a requested
            layer, or positions for max_seq_length.
    """

    def __init__(self, options: feature_extraction_options.ExtractFeaturesOptions):
        self.options = options
        start = starting_point.find_from_options(options)
        num_layers = start.config.num_hidden_layers
        for layer in options.layers:
            if not -num_layers <= layer < num_layers:
                raise ValueError(
                    f"--layers: layer {layer} does not exist. The model has "
                    f"{num_layers} layers; expected {-num_layers} to {num_layers - 1}."
                )
        if options.pooling != "none":
            pooling_module.check(options.pooling, start.config)
        if start.source is not None and start.source.text.pooling is not None:
            logger.warning(
                "%s is a sentence encoder. These are the outputs of its layers; for "
                "its vectors, with its own pooling, length and prompt, call "
                "bert_tf.embed in Python.",
                options.init_checkpoint,
            )
        settings = fine_tuning_predictor.LoadSettings(
            start=start, dtype="float32", batch_size=options.batch_size
        )
        length, casing = options.max_seq_length, start.tokenizer_arguments()
        record = _Record(max_seq_length=length, **casing)
        super().__init__(options.init_checkpoint, record, settings=settings)
        self._has_constant_weights = True
        self._compute = self._compiled(self._outputs, packing.ENCODER_COLUMNS)

    def extract_each(self, lines: Iterable[TextLine]) -> Iterator[Extracted]:
        """Yields the vectors of each text, in order; `lines` are read when needed.

        Raises:
            ValueError: the model has one segment, and a text is a pair; the message
                says where.
        """
        lines = iter(lines)
        is_pooled = self.options.pooling != "none"
        batches = BATCHES_SORTED_POOLED if is_pooled else BATCHES_SORTED
        while part := list(itertools.islice(lines, batches * self.options.batch_size)):
            yield from self._extract(part)
        self._warn_of_unknown()

    def _outputs(self, features):
        """Returns the vectors of a batch, [B, S, L, H] or [B, D], in a graph."""
        outputs = self.model(features)
        layers = [
            tf.cast(outputs["all_encoder_layers"][layer], tf.float32)
            for layer in self.options.layers
        ]
        if self.options.pooling == "none":
            return tf.stack(layers, axis=2)
        return pooling_module.pool(
            {"sequence_output": tf.concat(layers, axis=-1)},
            features["input_mask"],
            self.options.pooling,
        )

    def _extract(self, lines):
        """Returns what is extracted from each line, computed in batches by length."""
        rows = self._rows(lines)
        lengths = [len(row.pieces) for row in rows]
        texts: list[Extracted | None] = [None] * len(rows)
        for batch in fine_tuning_predictor.row_batches(
            lengths, self.options.batch_size
        ):
            features = packing.padded_features(
                [rows[index] for index in batch], max(lengths[i] for i in batch)
            )
            for index, vectors in zip(
                batch, np.asarray(self._compute(features)), strict=True
            ):
                ids = np.array(rows[index].pieces, np.int32)
                if self.options.pooling == "none":
                    vectors = vectors[: len(ids)].copy()
                texts[index] = Extracted(input_ids=ids, vectors=vectors)
        return texts

    def _rows(self, lines):
        ids_a = packing.token_ids(self.tokenizer, [line.text_a for line in lines])
        ids_b = packing.token_ids(self.tokenizer, [line.text_b or "" for line in lines])
        rows = []
        for line, first, second in zip(lines, ids_a, ids_b, strict=True):
            try:
                task_record.check_segments(self.config, 1 if line.text_b is None else 2)
            except ValueError as error:
                raise ValueError(f"{line.place}: {error}") from None
            rows.append(
                packing.pack_pair(
                    first,
                    None if line.text_b is None else second,
                    max_seq_length=self.options.max_seq_length,
                    cls=self.vocabulary.cls_id,
                    sep=self.vocabulary.sep_id,
                )
            )
        return rows


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
        extractor = Extractor(options)
        lines = read_examples(options.input_file)
        texts = _reported(extractor.extract_each(lines), num_lines)
        write(texts, options, extractor.vocabulary)
    return f"Vectors of {num_lines} lines are in {options.output_file}."


def _reported(texts, total):
    for number, extracted in enumerate(texts, start=1):
        yield extracted
        progress_module.report("extract", number, total, unit="lines")


def write(
    texts: Iterable[Extracted],
    options: feature_extraction_options.ExtractFeaturesOptions,
    vocabulary: vocabulary_module.Vocabulary,
) -> None:
    """Writes the vectors of texts; the file is whole or absent.

    Args:
        texts: consumed as they are written.
        options: output_file, output_format, layers and pooling are used.
        vocabulary: for the tokens in JSON lines.

    Raises:
        OSError: the file cannot be written.
    """
    if options.output_format == "npz":
        _write_npz(texts, options)
        return
    with files.complete_or_absent(options.output_file) as file:
        for index, text in enumerate(texts):
            file.write(_json_line(text, index, options, vocabulary))


def _json_line(extracted, index, options, vocabulary):
    """Returns the line of one text, with its line end.

    Without pooling it is the release's: `linex_index` (its spelling), and `features`
    with `token` and `layers` (`index` as in `layers`, and `values`) for every piece.
    With pooling there are `values` instead of features.
    """
    record: dict[str, Any] = {"linex_index": index}
    vectors = rounded(extracted.vectors)
    if options.pooling != "none":
        record["values"] = vectors
    else:
        record["features"] = [
            {
                "token": vocabulary.tokens[token_id],
                "layers": [
                    {"index": layer, "values": values}
                    for layer, values in zip(options.layers, rows, strict=True)
                ],
            }
            for token_id, rows in zip(extracted.input_ids, vectors, strict=True)
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
            for name, rows in _rows(text, options).items():
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


def _rows(extracted, options):
    """Returns one text's rows of each array."""
    is_pooled = options.pooling != "none"
    vectors = extracted.vectors[None] if is_pooled else extracted.vectors
    return {"input_ids": extracted.input_ids, "vectors": vectors}
