"""Feature extraction: reads lines, runs the encoder, writes vectors."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.tasks.feature_extraction import extraction
from bert_tf.tasks.feature_extraction import formats
from bert_tf.tasks.feature_extraction import options as feature_extraction_options


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
            "column with the texts as a .txt file, or pass the table to bert_tf.embed, "
            "which has text_column."
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
        with formats.open_writer(known, extractor.vocabulary) as write:
            for index, extracted in enumerate(extractor.extract_each(lines), start=1):
                write(extracted)
                progress_module.report("extract", index, num_lines, unit="lines")
    return f"Vectors of {num_lines} lines are in {options.output_file}."


def extract(
    init_checkpoint: str, texts: Iterable[str | Sequence[str]], **values: Any
) -> np.ndarray | list[extraction.Extracted]:
    """Returns the vectors of some texts.

    Args:
        init_checkpoint: a checkpoint in any format, or the name of a released model.
        texts: texts, or pairs (text, second text).
        **values: other fields of `options.ExtractionOptions`: layers, pooling,
            normalize, max_seq_length and so on.

    Returns:
        With pooling float32 [N, D], one row per text. Otherwise a list of `Extracted`,
        with `input_ids` int32 [S] and `vectors` float32 [S, L, H] of each text.

    Raises:
        OSError: a file cannot be read.
        ValueError: an option or a text is wrong, or as for `Extractor`.

    Example:
        >>> bert_tf.tasks.feature_extraction.extract(
        ...     "bert-base-uncased", ["Rain.", "Sun."], layers=(-1,), pooling="mean"
        ... ).shape
        (2, 768)
    """
    options = feature_extraction_options.ExtractionOptions(
        init_checkpoint=init_checkpoint, **values
    )
    items = input_items.read(texts, "a list of texts")
    lines = [_line(index, item) for index, item in enumerate(items)]
    extractor = extraction.Extractor(options)
    if options.pooling == "none":
        return list(extractor.extract_each(lines))
    return extractor.embed(lines)


def embed(
    source: str,
    texts: Any,
    *,
    text_column: str = "text",
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
        texts: N texts, or pairs (text, second text), as a list or another iterable; or
            a table of texts: a data frame, or the path of a .csv, .tsv or .jsonl file.
            The vectors are computed in batches of similar length and returned in the
            order of the texts.
        text_column: column of a table with the texts.
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
    items = input_items.texts_of(texts, text_column)
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
