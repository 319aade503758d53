"""What to convert: the source with the flags applied, and one of its heads."""

import dataclasses
import itertools
import re
from collections.abc import Iterable

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import added_words
from bert_tf.checkpoints import cut_vocabulary
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kept_layers
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.conversion import options as conversion_options


def open_source(
    options: conversion_options.ConvertCheckpointOptions,
    *,
    progress: progress_module.Progress,
) -> source_module.Source:
    """Returns the `Source` of a conversion, with what its flags add.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged, or contradicts a flag.
    """
    source = formats.open_source(options.source, progress=progress)
    start = starting_point.complete_source(
        source,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        needs_vocabulary=False,
    )
    known_casing = (source.do_lower_case, options.do_lower_case) != (None, None)
    text = dataclasses.replace(
        source.text,
        vocabulary=start.vocabulary,
        do_lower_case=start.do_lower_case if known_casing else None,
    )
    source = dataclasses.replace(source, config=start.config, text=text)
    return _resized(source, options)


def _resized(source, options):
    """Returns a source with the layers and the vocabulary that the flags ask for."""
    if options.keep_layers:
        source = kept_layers.cut_source(source, options.keep_layers)
    if options.cut_vocabulary is not None:
        paths = files.expand(options.cut_vocabulary)
        _check_plain_text(paths)
        texts = itertools.chain.from_iterable(map(files.read_lines, paths))
        source = cut_vocabulary.cut_source(source, texts, corpus=options.cut_vocabulary)
    if options.add_words is not None:
        lines = files.read_lines(options.add_words)
        source = added_words.grow_source(source, lines, words_file=options.add_words)
    return source


def _check_plain_text(paths):
    for path in paths:
        if re.search(r"\.jsonl?(\.\w+)?$", path):
            # Escapes such as \u00e9 would be taken for words.
            raise ValueError(
                f"--cut_vocabulary: {path} is JSON; expected text files, so extract "
                "its texts to one."
            )


def with_head(
    source: source_module.Source, kind: str | None, *, argument: str = "--head"
) -> tuple[source_module.Source, tuple[str, ...]]:
    """Returns a source with one head, and the names of other heads' weights.

    Args:
        source: `Source`.
        kind: kind of head to keep; None keeps everything.
        argument: name of the flag or argument with the kind, for messages.

    Raises:
        ValueError: the source has no such head, or the head is on layers that no
            format can store.
    """
    between = checkpoint_heads.layers_between((*source.shapes, *source.unmapped))
    if between and kind != "encoder":
        raise ValueError(
            f"{source.path} has a BiLSTM between encoder and head ({between[0]}), "
            f"which no format can store; pass {argument}=encoder for the encoder alone."
        )
    if kind is None:
        return source, ()
    weights = checkpoint_heads.HEADS[kind].weights
    missing = [name for name in weights if name not in source.shapes]
    if missing:
        found = f"its head is {source.head.kind}"
        if source.head.kind == "encoder":
            found = "it is an encoder without a head"
        raise ValueError(
            f"{argument}={kind}, but {source.path} has no such head ({missing[0]} is "
            f"missing); {found}."
        )
    is_other = source.head.is_known and source.head.kind != kind
    if checkpoint_heads.OUTPUT_WEIGHTS in weights and is_other:
        raise ValueError(
            f"{argument}={kind}, but the head of {source.path} is {source.head.kind}."
        )
    removed = [
        name
        for name in source.shapes
        if checkpoint_heads.is_head_weight(name) and name not in weights
    ]
    kept = without_heads(source, removed)
    head = checkpoint_heads.head_of(
        kept.shapes,
        kind=kind,
        labels=source.head.labels if source.head.num_labels else None,
        label_kind=source.head.label_kind,
    )
    return _with_head_of(kept, head), tuple(removed)


def without_heads(
    source: source_module.Source, removed: Iterable[str]
) -> source_module.Source:
    """Returns a source without some weights, and with the head that remains."""
    removed = set(removed)
    if not removed:
        return source
    shapes = {
        name: shape for name, shape in source.shapes.items() if name not in removed
    }
    head = source.head
    if removed & set(head.row.weights):
        head = checkpoint_heads.head_of(shapes)
    return _with_head_of(dataclasses.replace(source, shapes=shapes), head)


def _with_head_of(
    source: source_module.Source, head: checkpoint_heads.Head
) -> source_module.Source:
    """Returns a source with a head. Only a classifier keeps an output activation."""
    text = source.text
    if head.kind != "classification" and text.output_activation is not None:
        text = dataclasses.replace(text, output_activation=None, max_seq_length=None)
    return dataclasses.replace(source, head=head, text=text)
