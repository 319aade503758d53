"""Conversion on one page: open, place, write, read back, compare, report.

The target is complete or absent: it is written into a temporary folder, which is
renamed after it has been checked.
"""

import dataclasses
import os
from typing import Any

import tensorflow as tf

from bert_tf import files
from bert_tf import locks
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import added_words
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import keras_files
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import report
from bert_tf.checkpoints.conversion import verification
from bert_tf.tokenization import vocabulary as vocabulary_module

# Formats whose configuration can say that attention is causal.
_WITH_ATTENTION = ("bert", "keras")


def run(options: conversion_options.ConvertCheckpointOptions) -> str:
    """Converts a checkpoint as the options say and returns a report.

    Args:
        options: `ConvertCheckpointOptions`.

    Raises:
        OSError: something cannot be read or written.
        ValueError: the source is not a BERT or incomplete, the target cannot store its
            head or computes something else, or the result is not the same model.
        ImportError: a format needs a package that is not installed.
    """
    return report.text(convert(options))


def convert(
    options: conversion_options.ConvertCheckpointOptions,
) -> report.Conversion:
    """Converts a checkpoint as the options say; see `run`."""
    path = os.fspath(options.target).rstrip("/") or "/"
    is_file = options.target_format == "keras"
    if is_file and not path.endswith(keras_files.SUFFIX):
        raise ValueError(
            f"--target={path}: expected a name that ends with {keras_files.SUFFIX}; "
            "for .weights.h5, use bert_tf.load_model(...).save_weights."
        )
    # The new file or folder, and the name of the file, or of a prefix in the folder.
    place, name = path, os.path.basename(path) if is_file else ""
    if options.target_format == "bert" and path.endswith(".ckpt"):
        place, name = os.path.dirname(path) or os.getcwd(), os.path.basename(path)
    with locks.output_file(place, flag="target"):
        _check_absent(path, place, is_file)
        writer = formats.module_of(options.target_format)
        source = _open(options)
        converted, dropped = source.with_head(options.head)
        placement = _placed(converted, writer, options)
        progress_module.report("convert", 1, 4)
        with locks.complete_or_absent_folder(
            place,
            file=name if is_file else None,
            completes=lambda name: name.endswith((".index", "config.json")),
        ) as folder:
            temporary = os.path.join(folder, name) if name else folder
            written = _written(converted, writer, temporary, path)
            verification.check_same_bits(converted, written, placement)
            progress_module.report("convert", 3, 4)
            differences = verification.compare_outputs(
                converted, written, allows_changes=bool(placement.changes)
            )
    progress_module.report("convert", 4, 4)
    return report.Conversion(
        source=source,
        target_path=path,
        target_format=options.target_format,
        converted=converted,
        written=written,
        placement=placement,
        dropped=dropped,
        differences=differences,
    )


def _check_absent(path: str, place: str, is_file: bool) -> None:
    is_folder = files.is_folder(place)
    if is_folder and is_file:
        raise ValueError(f"{path} is a folder; expected a file name.")
    is_there = files.exists(place) or files.exists(f"{place}.index")
    if is_there and not (is_folder and not files.list_folder(place)):
        raise ValueError(
            f"{place} already exists; choose another --target, in a new or empty "
            "folder."
        )


def _written(
    source: source_module.Source, writer: Any, temporary: str, path: str
) -> source_module.Source:
    """Writes a source to a temporary place of the target, and reads it back."""
    try:
        writer.write(source, temporary)
    except (tf.errors.OpError, OSError) as error:
        reason = files.reason_of(error)
        raise OSError(f"{path} cannot be written: {reason}.") from error
    progress_module.report("convert", 2, 4)
    try:
        return writer.open_source(temporary)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"What was written for {path} cannot be read back ({error}), so nothing "
            "was kept."
        ) from error


def _open(
    options: conversion_options.ConvertCheckpointOptions,
) -> source_module.Source:
    """Returns the `Source` of a conversion, with what its flags change."""
    source = formats.open_source(options.source)
    start = starting_point.find(
        source,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        needs_vocabulary=False,
    )
    is_casing_known = (source.do_lower_case, options.do_lower_case) != (None, None)
    text = dataclasses.replace(
        source.text,
        vocabulary=start.vocabulary,
        do_lower_case=start.do_lower_case if is_casing_known else None,
    )
    source = dataclasses.replace(source, config=start.config, text=text)
    if options.add_words is None:
        return source
    vocabulary_module.check_size(options.add_words)
    words = files.read_lines(options.add_words)
    return added_words.grow_source(source, words, words_file=options.add_words)


def _placed(
    source: source_module.Source,
    writer: Any,
    options: conversion_options.ConvertCheckpointOptions,
) -> source_module.Placement:
    """Returns where everything goes; refuses to lose or change anything silently."""
    target_format = options.target_format
    is_causal = source.config is not None and source.config.is_causal
    if is_causal and target_format not in _WITH_ATTENTION:
        raise ValueError(
            f"{source.path} has causal attention, which {target_format} cannot store: "
            "every position would attend to the following ones. Convert it to one of "
            f"{', '.join(_WITH_ATTENTION)}."
        )
    placement = writer.placement(source)
    lost = [name for name in source.shapes if name not in placement.places]
    if heads := list(filter(checkpoint_heads.is_head_weight, lost)):
        is_other = source.head.row.weights.keys().isdisjoint(heads)
        raise ValueError(
            f"{target_format} cannot store {', '.join(heads)} of {source.path}; pass "
            f"--head={source.head.kind if is_other else 'encoder'} to leave it out."
        )
    if placement.unsaid and not options.drop_text_encoding:
        raise ValueError(
            f"{target_format} cannot store {', '.join(placement.unsaid)} of "
            f"{source.path}; pass --drop_text_encoding to leave it out."
        )
    if options.drop_text_encoding and not placement.unsaid:
        raise options_module.OptionError(
            f"--drop_text_encoding: {target_format} can store everything of "
            f"{source.path}; omit the flag."
        )
    if source.format == target_format:
        placement = dataclasses.replace(placement, changes=())
    if placement.changes and not options.allow_activation_change:
        raise ValueError(
            f"{target_format} computes something different from {source.path}: "
            f"{'; '.join(placement.changes)}; pass --allow_activation_change to "
            "convert it anyway."
        )
    return placement
