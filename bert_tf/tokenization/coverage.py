"""How well a vocabulary covers a text: pieces per word, and unknown words."""

import dataclasses
from collections.abc import Mapping

from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coverage:
    """Counts of words and word pieces in a text."""

    num_words: int  # Including punctuation marks.
    num_pieces: int
    num_unknown: int  # How many of the pieces are [UNK].

    def __str__(self):
        per_word = self.num_pieces / max(1, self.num_words)
        share = self.num_unknown / max(1, self.num_pieces)
        return (
            f"{self.num_words:,} words, {per_word:.4f} pieces per word, "
            f"{share:.4%} of the pieces are [UNK]"
        )


def measure(
    vocabulary: vocabulary_module.Vocabulary, counts: Mapping[str, int]
) -> Coverage:
    """Returns the `Coverage` of a vocabulary, given how often each word occurs."""
    tokenizer = wordpiece.WordpieceTokenizer(vocabulary.ids, vocabulary_module.UNK)
    num_pieces = num_unknown = 0
    for word, count in counts.items():
        pieces = tokenizer.tokenize_word(word)
        num_pieces += count * len(pieces)
        num_unknown += count * pieces.count(vocabulary_module.UNK)
    return Coverage(
        num_words=sum(counts.values()), num_pieces=num_pieces, num_unknown=num_unknown
    )
