"""Text to word pieces to ids in plain Python: the reference implementation."""

import os
import re
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.tokenization import basic
from bert_tf.tokenization import characters
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

# Tokens such as [CLS], [unused1] and <S>, which no text becomes.
_SPECIAL = re.compile(r"\[.*\]|<.*>")
_SPACE_BEFORE = re.compile(r" ([.,!?;:%)\]])")
# Words repeat, and the pieces of a word do not depend on its neighbors, so they are
# cached.
MAX_CACHED_WORDS = 200_000
MAX_CACHED_LENGTH = 50
# Vocabularies of lowercased text have no accents, and others of most languages many.
_ACCENTED_SHARE = 0.02


class FullTokenizer:
    """The release's tokenizer: splits text into words, then words into pieces.

    Args:
        vocab_file: path of a vocabulary, or a `Vocabulary`.
        do_lower_case: whether to lowercase.
        strip_accents: whether to strip accents. None means the value of
            `do_lower_case`.
        never_split: tokens of the vocabulary that are kept whole wherever they occur
            in a text, such as ("[MASK]",).

    Attributes:
        vocab: dict of token to id, ordered by id.
        inv_vocab: dict of id to token.
        vocabulary: the `Vocabulary`.

    Raises:
        OSError: the vocabulary cannot be read.
        ValueError: the file is not a vocabulary, or lacks a token of `never_split`.

    Source: FullTokenizer of tokenization.py, 2018.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike | vocabulary_module.Vocabulary,
        do_lower_case: bool = True,
        *,
        strip_accents: bool | None = None,
        never_split: Sequence[str] = (),
    ):
        self.vocabulary = load_vocabulary(vocab_file)
        self.vocab = self.vocabulary.ids
        self.inv_vocab = dict(enumerate(self.vocabulary.tokens))
        self.basic_tokenizer = basic.BasicTokenizer(
            do_lower_case, strip_accents=strip_accents, never_split=never_split
        )
        for token in self.basic_tokenizer.never_split:
            if token not in self.vocabulary:
                raise ValueError(
                    f"never_split: {token!r} is not among the vocabulary's "
                    f"{len(self.vocabulary)} tokens, so it would have no id."
                )
        self.wordpiece_tokenizer = wordpiece.WordpieceTokenizer(self.vocab)
        self._cache: dict[str, list[str]] = {}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the word pieces of a text (str, or bytes in UTF-8)."""
        pieces: list[str] = []
        for part in self.basic_tokenizer.parts(basic.convert_to_unicode(text)):
            if part in self.basic_tokenizer.never_split:
                pieces.append(part)
                continue
            for word in basic.split_words(part):
                pieces += self._cache.get(word) or self._pieces(word)
        return pieces

    def tokenize_word(self, word: str) -> list[str]:
        """Returns the word pieces of one word from `basic.split_words`."""
        pieces: list[str] = []
        for token in self.basic_tokenizer.tokenize_word(word):
            pieces += self.wordpiece_tokenizer.tokenize_word(token)
        return pieces

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens.

        Raises:
            KeyError: a token is not in the vocabulary.
        """
        return [self.vocab[token] for token in tokens]

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the tokens of ids.

        Raises:
            KeyError: an id is not in the vocabulary.
        """
        return [self.inv_vocab[token_id] for token_id in ids]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Returns the text of ids; lowercasing and removed spaces are not undone.

        Args:
            ids: of one row, such as `features["input_ids"][0]`.
            skip_special_tokens: whether to leave out tokens such as [CLS] and [PAD].

        Example: tokenizer.decode([1996, 4937, 2938, 1012]) is "the cat sat."
        """
        pieces = self.convert_ids_to_tokens(map(int, ids))
        if skip_special_tokens:
            pieces = [piece for piece in pieces if not _SPECIAL.fullmatch(piece)]
        text = " ".join(pieces).replace(" ##", "").removeprefix("##")
        return _SPACE_BEFORE.sub(r"\1", text)

    def tokenizer_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments of a tokenizer, besides the vocabulary."""
        basic_tokenizer = self.basic_tokenizer
        return {
            "do_lower_case": basic_tokenizer.do_lower_case,
            "strip_accents": basic_tokenizer.strip_accents,
            "never_split": basic_tokenizer.never_split,
        }

    def _pieces(self, word):
        pieces = self.tokenize_word(word)
        if len(word) <= MAX_CACHED_LENGTH:
            if len(self._cache) >= MAX_CACHED_WORDS:
                self._cache.clear()
            self._cache[word] = pieces
        return pieces


def load_vocabulary(
    vocab_file: str | os.PathLike | vocabulary_module.Vocabulary,
) -> vocabulary_module.Vocabulary:
    """Returns a `Vocabulary`: the argument itself, or the one read from its path.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a vocabulary.
    """
    if isinstance(vocab_file, vocabulary_module.Vocabulary):
        return vocab_file
    if isinstance(vocab_file, str | os.PathLike):
        if files.is_folder(vocab_file):
            raise ValueError(
                f"{os.fspath(vocab_file)} is a folder, expected the file of a "
                "vocabulary; bert_tf.FullTokenizer and bert_tf.TextPreprocessor also "
                "take folders."
            )
        return vocabulary_module.Vocabulary.load(vocab_file)
    raise ValueError(
        f"vocab_file: expected a path or a Vocabulary, got {type(vocab_file).__name__}."
    )


def cased_piece(
    vocabulary: vocabulary_module.Vocabulary, never_split: Sequence[str] = ()
) -> str | None:
    """Returns a word piece that lowercased text never has; None if there is none."""
    pieces = _text_pieces(vocabulary, never_split)
    return next((piece for piece in pieces if piece != piece.lower()), None)


def casing_warning(
    vocabulary: vocabulary_module.Vocabulary,
    *,
    do_lower_case: bool,
    never_split: Sequence[str] = (),
) -> str | None:
    """Returns a sentence if a vocabulary does not fit the casing of the text.

    Args:
        vocabulary: of the model.
        do_lower_case: whether text is lowercased.
        never_split: tokens of the vocabulary that are found as they are written.
    """
    cased = cased_piece(vocabulary, never_split)
    if do_lower_case and cased is not None:
        return (
            f"Text is lowercased, but the vocabulary has cased pieces such as {cased!r}"
            ", which will never be used; pass --do_lower_case=False for a cased model."
        )
    if do_lower_case or cased is not None:
        return None
    pieces = _text_pieces(vocabulary, never_split)
    if any(_has_capital(letter) for piece in pieces for letter in piece):
        return (
            "Text is not lowercased, but no piece of the vocabulary has capital "
            "letters, so words with capitals become [UNK]; pass --do_lower_case for "
            "an uncased model."
        )
    return None


def pretraining_casing_warning(
    vocabulary: vocabulary_module.Vocabulary, *, do_lower_case: bool
) -> str | None:
    """Returns `casing_warning`, or a sentence if many pieces have stripped accents."""
    warning = casing_warning(vocabulary, do_lower_case=do_lower_case)
    if warning is not None or not do_lower_case:
        return warning
    pieces = [token for token in vocabulary.tokens if not token.startswith("[")]
    accented = [p for p in pieces if characters.strip_accents(p) != p]
    if len(accented) > _ACCENTED_SHARE * len(pieces):
        return (
            f"Lowercased text loses its accents, but {len(accented)} of the "
            f"{len(pieces)} pieces of the vocabulary have accents, such as "
            f"{accented[0]!r}; use another vocabulary, or lowercase the text yourself "
            "and pass --do_lower_case=False."
        )
    return None


def _text_pieces(vocabulary, never_split):
    return (
        token
        for token in vocabulary
        if not _SPECIAL.fullmatch(token) and token not in never_split
    )


def _has_capital(letter):
    """Returns whether texts write a letter as a capital too.

    Georgian texts have no capitals, although Unicode does. A symbol such as the micro
    sign has that of another letter.
    """
    capital = letter.upper()
    is_georgian = "\u10d0" <= letter <= "\u10ff"
    return letter.isalpha() and letter == capital.lower() != capital and not is_georgian


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Checks `do_lower_case` against the folder name of a released checkpoint.

    Args:
        do_lower_case: bool.
        init_checkpoint: path such as "uncased_L-12_H-768_A-12/bert_model.ckpt", or
            None. Other names are not checked.

    Raises:
        ValueError: the checkpoint was trained on lowercased text and `do_lower_case`
            is False, or the other way round.

    Source: the function of the same name in tokenization.py, 2018, extended to the
    models that were released later.
    """
    match = re.search(r"([A-Za-z0-9_-]+)/bert_model\.ckpt", init_checkpoint or "")
    if match is None:
        return
    name = match.group(1)
    expected = is_lower_cased(name)
    if expected is not None and expected != do_lower_case:
        raise ValueError(
            f"--do_lower_case={do_lower_case} was given for {init_checkpoint}, but "
            f"{name} was trained on {'lowercased' if expected else 'cased'} text; pass "
            f"--do_lower_case={expected}."
        )


def is_lower_cased(name: str) -> bool | None:
    """Returns whether a released model was trained on lowercased text.

    Args:
        name: the name of its folder, such as "uncased_L-12_H-768_A-12".

    Returns:
        bool, or None if the name is not that of a released model.
    """
    if re.fullmatch(
        r"(wwm_)?uncased_L-.*|(multilingual|chinese)_L-12_H-768_A-12", name
    ):
        return True
    return False if re.fullmatch(r"(wwm_|multi_)?cased_L-.*", name) else None
