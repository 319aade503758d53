"""Cuts the vocabulary of a model to the word pieces that a corpus needs.

In small models, the table of words is half of the weights: 11.7 of the 22.7 million of
a MiniLM with 6 layers. A program's texts contain only some of these words. WordPiece
takes the longest piece that matches. As long as all pieces of a word are kept, the word
is therefore split as before, and the model computes the same. Other words are split
into shorter pieces, down to single characters, which are all kept.

Shape letters: V vocabulary.
"""

import dataclasses
import math
import re
from collections.abc import Iterable

import numpy as np

from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import vocabulary_tables
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

# [CLS], and markers that some checkpoints add. [unused] pieces occur in no text.
_SPECIAL = re.compile(r"\[(?!unused).*\]|<.*>")


def pieces_in(texts: Iterable[str], tokenizer: full.FullTokenizer) -> set[str]:
    """Returns the word pieces that occur in texts."""
    found: set[str] = set()
    for text in texts:
        found.update(tokenizer.tokenize(text))
    return found


def cut_source(
    source: source_module.Source, texts: Iterable[str], *, corpus: str
) -> source_module.Source:
    """Returns a source with the part of its vocabulary that a corpus needs.

    Args:
        source: with a configuration, a vocabulary and its casing.
        texts: the corpus. The source's own prompts also count as texts.
        corpus: where they come from, for messages.

    Raises:
        ValueError: the source lacks one of these, or the texts have no words.
    """
    tokenizer = vocabulary_tables.tokenizer_of(source)
    found = pieces_in(texts, tokenizer)
    if not found:
        raise ValueError(
            f"{corpus}: there are no words; expected texts like those that the model "
            "will read."
        )
    ids = kept_ids(
        tokenizer, found | pieces_in(source.text.prompts.values(), tokenizer)
    )
    tokens = tokenizer.vocabulary.tokens
    cut = vocabulary_tables.resized(
        source,
        vocabulary_module.Vocabulary([tokens[number] for number in ids], source=corpus),
        lambda weight: np.asarray(weight)[ids],
        num_rows=len(ids),
        notes=(),
    )
    note = (
        f"cut the vocabulary to {corpus}: {len(ids):,} of {len(tokens):,} word pieces "
        f"remain, and {_millions(cut)} of {_millions(source)} million parameters; ids "
        "have changed"
    )
    return dataclasses.replace(cut, notes=(*source.notes, note))


def kept_ids(tokenizer: full.FullTokenizer, found: Iterable[str]) -> list[int]:
    """Returns the ids of pieces that are found, single characters, or special."""
    found = {*found, *tokenizer.basic_tokenizer.never_split}
    return [
        number
        for number, piece in enumerate(tokenizer.vocabulary)
        if piece in found
        or len(piece.removeprefix(wordpiece.CONTINUATION)) == 1
        or _SPECIAL.fullmatch(piece)
    ]


def _millions(source: source_module.Source) -> str:
    return f"{sum(map(math.prod, source.shapes.values())) / 1e6:.1f}"
