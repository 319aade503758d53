"""Words to word pieces: the longest piece in the vocabulary first."""

from bert_tf.tokenization import basic

# Longer words are unknown whatever they consist of (2018).
MAX_INPUT_CHARS_PER_WORD = 200
CONTINUATION = "##"


class WordpieceTokenizer:
    """Splits words into the longest pieces that a vocabulary has, from the left.

    Args:
        vocab: container of pieces; those inside a word start with "##".
        unk_token: what a word becomes that cannot be split into pieces.
        max_input_chars_per_word: longer words become `unk_token` too.

    Source: WordpieceTokenizer of tokenization.py, 2018.
    """

    def __init__(
        self,
        vocab,
        unk_token="[UNK]",
        max_input_chars_per_word=MAX_INPUT_CHARS_PER_WORD,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        self._longest = max((len(piece) for piece in vocab), default=0)
        # Pieces inside a word, by what they are without "##".
        self._inside = {
            piece.removeprefix(CONTINUATION): piece
            for piece in vocab
            if piece.startswith(CONTINUATION)
        }

    def tokenize(self, text):
        """Returns the word pieces of a text whose words stand between white space.

        "unaffable" gives ["un", "##aff", "##able"].
        """
        words = basic.convert_to_unicode(text).split()
        return [piece for word in words for piece in self.tokenize_word(word)]

    def tokenize_word(self, word):
        """Returns the word pieces of one word, or the unknown token alone."""
        if len(word) > self.max_input_chars_per_word:
            return [self.unk_token]
        if word in self.vocab:
            return [word]
        pieces, inside = [], self._inside
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
