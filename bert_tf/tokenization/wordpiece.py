"""Words to word pieces, by greedy longest match from the left."""

from collections.abc import Collection

from bert_tf.tokenization import basic

# Longer words become [UNK], as in the release: they are rarely words.
MAX_INPUT_CHARS_PER_WORD = 200
CONTINUATION = "##"


class WordpieceTokenizer:
    """Splits words into pieces: from the left, always the longest known piece.

    Args:
        vocab: the pieces, such as a dict of piece to id. Those for the inside of words
            start with "##".
        unk_token: replaces a word that cannot be split into known pieces.
        max_input_chars_per_word: longer words are also replaced by `unk_token`.

    Source: WordpieceTokenizer of tokenization.py, 2018.
    """

    def __init__(
        self,
        vocab: Collection[str],
        unk_token: str = "[UNK]",
        max_input_chars_per_word: int = MAX_INPUT_CHARS_PER_WORD,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        self._longest = max((len(piece) for piece in vocab), default=0)
        # Pieces for the inside of words: text without "##" -> piece.
        self._inside = {
            piece.removeprefix(CONTINUATION): piece
            for piece in vocab
            if piece.startswith(CONTINUATION)
        }

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the word pieces of a text whose words are separated by white space.

        Example: "unaffable" -> ["un", "##aff", "##able"].
        """
        words = basic.convert_to_unicode(text).split()
        return [piece for word in words for piece in self.tokenize_word(word)]

    def tokenize_word(self, word: str) -> list[str]:
        """Returns the word pieces of one word, or only the unknown token."""
        if len(word) > self.max_input_chars_per_word:
            return [self.unk_token]
        if word in self.vocab:
            return [word]
        pieces: list[str] = []
        inside = self._inside
        start, known = 0, self.vocab
        while start < len(word):
            end = min(len(word), start + self._longest)
            while (piece := word[start:end]) not in known:
                end -= 1
                if end == start:
                    return [self.unk_token]
            pieces.append(inside[piece] if start else piece)
            start, known = end, inside
        return pieces
