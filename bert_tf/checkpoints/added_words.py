"""Adds words to a vocabulary, and rows for them to the weights of a model.

A word that the vocabulary lacks is split into pieces, often many short ones. Added as a
piece of its own, it keeps one position and gets one embedding. Its row begins as the
mean of the rows of the pieces that it had, and so does its bias in the head for masked
words. The model therefore begins near what it computed before, and training does the
rest. New words take the ids after all existing ones, which keep theirs.

Shape letters: V vocabulary, H hidden.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.tokenization import full
from bert_tf.tokenization import learning
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

_MAX_NAMED = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class AddedWords:
    """Words to add to a vocabulary."""

    vocabulary: vocabulary_module.Vocabulary  # With the words.
    words: tuple[learning.ListedWord, ...]  # In the order of their ids.
    pieces: tuple[tuple[int, ...], ...]  # Ids that each word had before.
    known: tuple[learning.ListedWord, ...]  # Words that the vocabulary already had.

    @property
    def first_id(self) -> int:
        """The id of the first new word."""
        return len(self.vocabulary) - len(self.words)

    def num_rows(self, num_rows: int) -> int:
        """Returns the rows of a table with the words. Padding rows are used first."""
        return max(num_rows, len(self.vocabulary))

    def grow(self, weight: np.ndarray) -> np.ndarray:
        """Returns a table [V, H] or bias [V] with a row for each new word."""
        means = [weight[list(ids)].mean(axis=0) for ids in self.pieces]
        rows = [weight[: self.first_id], *(np.asarray(row)[None] for row in means)]
        return np.concatenate([*rows, weight[len(self.vocabulary) :]])

    def notes(self) -> Iterator[str]:
        """Yields sentences for a report."""
        if self.words:
            yield (
                f"added {_counted(self.words)} with the ids {self.first_id} to "
                f"{len(self.vocabulary) - 1}; each row is the mean of the rows of the "
                "pieces that the word had"
            )
        changed = [word for word in self.words if word.given != word.token]
        if changed:
            examples = ", ".join(
                f"{word.given} as {word.token}" for word in changed[:_MAX_NAMED]
            )
            yield f"added {_counted(changed)} as the tokenizer normalizes: {examples}"
        if self.known:
            examples = ", ".join(word.token for word in self.known[:_MAX_NAMED])
            yield (
                f"skipped {_counted(self.known)} that the vocabulary already has: "
                f"{examples}"
            )


def find_new(
    tokenizer: full.FullTokenizer, words: Iterable[str], *, source: str
) -> AddedWords:
    """Returns which words of a list are new, and the pieces that they had.

    Args:
        tokenizer: with the vocabulary before.
        words: such as the lines of a file. Each must be a single word for the
            tokenizer, which normalizes it like text. Empty lines, repeated words and
            words that the vocabulary already has are skipped.
        source: the file of the words, for error messages.

    Raises:
        ValueError: there is no word; or a line is not a single word, is too long for a
            word, or is a piece for the inside of words.
    """
    vocabulary = tokenizer.vocabulary
    new, known = [], []
    for word in learning.read_words(words, tokenizer.basic_tokenizer, source=source):
        if word.token in vocabulary:
            known.append(word)
        elif word.token.startswith(wordpiece.CONTINUATION):
            raise ValueError(
                f"{word.place}: {word.given!r} is a piece for the inside of words, "
                "which would change how other words are split; only whole words can "
                "be added."
            )
        else:
            new.append(word)
    if not (new or known):
        raise ValueError(f"{source}: there are no words; expected one per line.")
    pieces = [tokenizer.wordpiece_tokenizer.tokenize_word(word.token) for word in new]
    return AddedWords(
        vocabulary=vocabulary_module.Vocabulary(
            [*vocabulary.tokens, *(word.token for word in new)],
            source=source,
        ),
        words=tuple(new),
        pieces=tuple(tuple(tokenizer.convert_tokens_to_ids(word)) for word in pieces),
        known=tuple(known),
    )


def grow_source(
    source: source_module.Source, words: Iterable[str], *, words_file: str
) -> source_module.Source:
    """Returns a source with more words, from `words_file`, in vocabulary and weights.

    Raises:
        ValueError: the source lacks its configuration, vocabulary or casing; or as
            `find_new`.
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
    config = source.required_config()
    companion_files.check_vocabulary_size(config, len(source.vocabulary))
    tokenizer = full.FullTokenizer(
        source.vocabulary, **source.text.tokenizer_arguments()
    )
    added = find_new(tokenizer, words, source=words_file)
    num_rows = added.num_rows(config.vocab_size)
    is_grown = checkpoint_heads.is_sized_by_vocabulary

    def read_each(wanted: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        for name, weight in source.read_each(wanted):
            yield name, added.grow(weight) if is_grown(name) else weight

    return dataclasses.replace(
        source,
        shapes={
            name: (num_rows, *shape[1:]) if is_grown(name) else shape
            for name, shape in source.shapes.items()
        },
        read_each=read_each,
        config=dataclasses.replace(config, vocab_size=num_rows),
        text=dataclasses.replace(source.text, vocabulary=added.vocabulary),
        notes=(*source.notes, *added.notes()),
    )


def _counted(words: Any) -> str:
    return "1 word" if len(words) == 1 else f"{len(words):,} words"
