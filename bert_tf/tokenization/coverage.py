"""How well a vocabulary covers text: pieces a word, and unknown words."""

import dataclasses

from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coverage:
    """How a vocabulary does on counted words."""

    num_words: int  # Words in the text, punctuation marks among them.
    num_pieces: int  # Word pieces that they give.
    num_unknown: int  # [UNK] among these.

    def __str__(self):
        per_word = self.num_pieces / max(1, self.num_words)
        share = self.num_unknown / max(1, self.num_pieces)
        return (
            f"{self.num_words:,} words give {per_word:.4f} pieces a word, "
            f"{share:.4%} of them [UNK]"
        )


def measure(vocabulary, counts):
    """Returns the `Coverage` of a vocabulary on words with counts."""
    tokenizer = wordpiece.WordpieceTokenizer(vocabulary.ids, vocabulary_module.UNK)
    num_pieces = num_unknown = 0
    for word, count in counts.items():
        pieces = tokenizer.tokenize_word(word)
        num_pieces += count * len(pieces)
        num_unknown += count * pieces.count(vocabulary_module.UNK)
    return Coverage(
        num_words=sum(counts.values()), num_pieces=num_pieces, num_unknown=num_unknown
    )
