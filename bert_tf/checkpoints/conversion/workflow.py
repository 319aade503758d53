"""Conversion on one page: open, place, write, read back, compare, report."""

import dataclasses
from typing import Any

import tensorflow as tf

from bert_tf import files
from bert_tf import locks
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import added_words
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import report
from bert_tf.checkpoints.conversion import target as target_module
from bert_tf.checkpoints.conversion import verification

# Formats whose configuration can say that attention is causal.
_WITH_ATTENTION = ("bert", "keras")


def run(
    options: conversion_options.ConvertCheckpointOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Converts a checkpoint as the options say and returns a report.

    Args:
        options: `ConvertCheckpointOptions`.
        progress: see `bert_tf.progress`.

    Raises:
        OSError: something cannot be read or written.
        ValueError: the source is not a BERT or incomplete, the target cannot store its
            head or computes something else, or the result is not the same model.
        ImportError: a format needs a package that is not installed.
    """
    return report.text(convert(options, progress=progress))


def convert(
    options: conversion_options.ConvertCheckpointOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> report.Conversion:
    """Converts a checkpoint as the options say; see `run`."""
    target = target_module.target_of(options.target, options.target_format)
    with locks.output_file(target.path, flag="target"):
        return _convert(options, target, progress)


def _convert(
    options: conversion_options.ConvertCheckpointOptions,
    target: target_module.Target,
    progress: progress_module.Progress,
) -> report.Conversion:
    writer = formats.module_of(options.target_format)
    target_module.check(target)
    source = _open(options, progress)
    _check_attention(source, options.target_format)
    chosen, left_out = source.with_head(options.head)
    kept, dropped, placement = _placed(chosen, writer, options)
    progress("convert", 1, 4)
    with target_module.complete_or_absent(target) as folder:
        path = target.inside(folder)
        _write(writer, kept, folder, target)
        progress("convert", 2, 4)
        written = _read_back(writer, path, target)
        verification.check_same_bits(kept, written, placement)
        progress("convert", 3, 4)
        outputs = verification.compare_outputs(kept, written, writer, path)
        _check_outputs(outputs, placement)
    progress("convert", 4, 4)
    return report.Conversion(
        source=source,
        target_path=target.path,
        target_format=options.target_format,
        kept=kept,
        written=written,
        placement=placement,
        dropped=(*left_out, *dropped),
        outputs=outputs,
    )


def _open(
    options: conversion_options.ConvertCheckpointOptions,
    progress: progress_module.Progress,
) -> source_module.Source:
    """Returns the `Source` of a conversion, with what its flags change."""
    source = formats.open_source(options.source, progress=progress)
    start = starting_point.complete_source(
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
    words = files.read_lines(options.add_words)
    return added_words.grow_source(source, words, words_file=options.add_words)


def _check_attention(source: source_module.Source, target_format: str) -> None:
    is_causal = source.config is not None and source.config.is_causal
    if is_causal and target_format not in _WITH_ATTENTION:
        raise ValueError(
            f"{source.path} has causal attention, which {target_format} cannot store: "
            "every position would attend to the following ones. Convert it to one of "
            f"{', '.join(_WITH_ATTENTION)}."
        )


def _placed(
    source: source_module.Source,
    writer: Any,
    options: conversion_options.ConvertCheckpointOptions,
) -> tuple[source_module.Source, list[str], source_module.Placement]:
    """Returns what is converted, the heads dropped, and where everything goes."""
    placement = writer.placement(source)
    heads = list(filter(checkpoint_heads.is_head_weight, placement.without_place))
    if heads and not options.drop_head:
        raise ValueError(
            f"{options.target_format} cannot store {', '.join(heads)} of "
            f"{source.path}; pass --drop_head to leave it out."
        )
    if options.drop_head and not heads:
        raise options_module.OptionError(
            f"--drop_head: {options.target_format} can store everything of "
            f"{source.path}; omit the flag, or pass --head=encoder for the encoder "
            "alone."
        )
    if heads:
        source = source.without_weights(heads)
        placement = writer.placement(source)
    if placement.unsaid and not options.drop_text_encoding:
        raise ValueError(
            f"{options.target_format} cannot store {', '.join(placement.unsaid)} of "
            f"{source.path}; pass --drop_text_encoding to leave it out."
        )
    if options.drop_text_encoding and not placement.unsaid:
        raise options_module.OptionError(
            f"--drop_text_encoding: {options.target_format} can store everything of "
            f"{source.path}; omit the flag."
        )
    if source.format == options.target_format:
        placement = dataclasses.replace(placement, changes=())
    if placement.changes and not options.allow_activation_change:
        raise ValueError(
            f"{options.target_format} computes something different from {source.path}: "
            f"{'; '.join(placement.changes)}; pass --allow_activation_change to "
            "convert it anyway."
        )
    return source, heads, placement


def _check_outputs(
    outputs: verification.OutputComparison, placement: source_module.Placement
) -> None:
    for name, difference in outputs.differences.items():
        if not difference <= verification.TOLERANCE:
            raise ValueError(
                f"{name} of the converted checkpoint differs by {difference:.1e} from "
                f"the source's (at most {verification.TOLERANCE:g} is allowed), so "
                "nothing was kept."
            )
    for name, difference in outputs.changes.items():
        if not (difference <= verification.TOLERANCE or placement.changes):
            raise ValueError(
                f"{name} of the converted checkpoint differs by {difference:.1e}, "
                "because its configuration has a different activation or epsilon, so "
                "nothing was kept."
            )


def _write(
    writer: Any, source: source_module.Source, folder: str, target: target_module.Target
) -> None:
    try:
        if target.is_folder:
            writer.write(source, folder)
        elif target.is_prefix:
            writer.write(source, folder, name=target.name)
        else:
            writer.write(source, target.inside(folder))
    except (tf.errors.OpError, OSError) as error:
        reason = files.reason_of(error)
        raise OSError(f"{target.path} cannot be written: {reason}.") from error


def _read_back(
    writer: Any, path: str, target: target_module.Target
) -> source_module.Source:
    try:
        return writer.open_source(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"What was written for {target.path} cannot be read back ({error}), so "
            "nothing was kept."
        ) from error
