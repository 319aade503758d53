"""A checkpoint with another vocabulary: its tokenizer, and weights with other rows."""

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module


def tokenizer_of(source: source_module.Source) -> full.FullTokenizer:
    """Returns the tokenizer of a checkpoint whose vocabulary is about to change.

    Raises:
        ValueError: the source lacks a configuration, a vocabulary or its casing, or the
            vocabulary does not fit into the configuration.
    """
    if source.vocabulary is None:
        raise ValueError(
            f"{source.path} has no vocabulary to change; pass it as --vocab_file."
        )
    if source.do_lower_case is None:
        raise ValueError(
            f"It is unknown whether {source.path} was trained on lowercased text, so "
            "its vocabulary cannot be changed; pass --do_lower_case."
        )
    source.required_config().check_vocabulary_size(len(source.vocabulary))
    return full.FullTokenizer(source.vocabulary, **source.text.tokenizer_arguments())


def resized(
    source: source_module.Source,
    vocabulary: vocabulary_module.Vocabulary,
    resize: Callable[[np.ndarray], np.ndarray],
    *,
    num_rows: int,
    notes: Iterable[str],
) -> source_module.Source:
    """Returns a source with another vocabulary.

    Args:
        source: with a configuration.
        vocabulary: the new one.
        resize: from a table [V, H] or bias [V] to that of the new vocabulary.
        num_rows: rows of the new tables.
        notes: sentences for the report of a conversion.
    """

    def read_each(wanted: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        for name, weight in source.read_each(wanted):
            is_resized = checkpoint_heads.is_sized_by_vocabulary(name)
            yield name, resize(weight) if is_resized else weight

    return dataclasses.replace(
        source,
        shapes={
            name: (num_rows, *shape[1:])
            if checkpoint_heads.is_sized_by_vocabulary(name)
            else shape
            for name, shape in source.shapes.items()
        },
        read_each=read_each,
        config=dataclasses.replace(source.required_config(), vocab_size=num_rows),
        text=dataclasses.replace(source.text, vocabulary=vocabulary),
        notes=(*source.notes, *notes),
    )
