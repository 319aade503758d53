"""Text to word pieces to ids, in plain Python: the reference."""

import os
import re

from bert_tf.tokenization import basic
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

convert_to_unicode = basic.convert_to_unicode

# Words repeat, and what a word gives does not depend on its neighbours.
MAX_REMEMBERED_WORDS = 200_000
MAX_REMEMBERED_LENGTH = 50


class FullTokenizer:
    """The release's tokenizer: basic tokens, then word pieces.

    Args:
        vocab_file: path of a vocabulary, or a `Vocabulary`.
        do_lower_case: whether to lower-case, and to strip accents unless told.
        strip_accents: whether to strip accents; None: as `do_lower_case`.
        never_split: tokens of the vocabulary that are kept whole wherever they occur
            in a text, such as ("[MASK]",).

    Attributes:
        vocab: dict of token to id, in the order of the ids.
        inv_vocab: dict of id to token.
        vocabulary: the `Vocabulary`.

    Raises:
        OSError: the vocabulary cannot be read.
        ValueError: the file is no vocabulary, or lacks a token of `never_split`.

    Source: FullTokenizer of tokenization.py, 2018.
    """

    def __init__(
        self, vocab_file, do_lower_case=True, *, strip_accents=None, never_split=()
    ):
        self.vocabulary = load_vocabulary(vocab_file)
        self.vocab = self.vocabulary.ids
        self.inv_vocab = dict(enumerate(self.vocabulary.tokens))
        self.basic_tokenizer = basic.BasicTokenizer(
            do_lower_case, strip_accents=strip_accents, never_split=never_split
        )
        check_never_split(self.basic_tokenizer.never_split, self.vocabulary)
        self.wordpiece_tokenizer = wordpiece.WordpieceTokenizer(self.vocab)
        self._remembered = {}

    def tokenize(self, text):
        """Returns the list of word pieces of a text (str, or bytes in UTF-8)."""
        pieces = []
        for part in self.basic_tokenizer.parts(convert_to_unicode(text)):
            if part in self.basic_tokenizer.never_split:
                pieces.append(part)
                continue
            for word in basic.split_words(part):
                pieces += self._remembered.get(word) or self._pieces(word)
        return pieces

    def tokenize_word(self, word):
        """Returns the list of word pieces of one word that `basic.split_words` gave."""
        pieces = []
        for token in self.basic_tokenizer.tokenize_word(word):
            pieces += self.wordpiece_tokenizer.tokenize_word(token)
        return pieces

    def convert_tokens_to_ids(self, tokens):
        """Returns the list of ids of tokens.

        Raises:
            KeyError: a token is not in the vocabulary.
        """
        return [self.vocab[token] for token in tokens]

    def convert_ids_to_tokens(self, ids):
        """Returns the list of tokens of ids.

        Raises:
            KeyError: an id is not in the vocabulary.
        """
        return [self.inv_vocab[token_id] for token_id in ids]

    def _pieces(self, word):
        pieces = self.tokenize_word(word)
        if len(word) <= MAX_REMEMBERED_LENGTH:
            if len(self._remembered) >= MAX_REMEMBERED_WORDS:
                self._remembered.clear()
            self._remembered[word] = pieces
        return pieces


def load_vocabulary(vocab_file):
    """Returns a `Vocabulary`: the one given, or the one in the file given.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no vocabulary.
    """
    if isinstance(vocab_file, vocabulary_module.Vocabulary):
        return vocab_file
    if isinstance(vocab_file, str | os.PathLike):
        return vocabulary_module.Vocabulary.load(vocab_file)
    raise ValueError(
        f"vocab_file: expected a path or a Vocabulary, got {type(vocab_file).__name__}."
    )


def check_never_split(never_split, vocabulary):
    """Raises ValueError for a token that the vocabulary does not have."""
    for token in never_split:
        if token not in vocabulary:
            raise ValueError(
                f"never_split: {token!r} is not among the vocabulary's "
                f"{len(vocabulary)} tokens, so it would have no id."
            )


def validate_case_matches_checkpoint(do_lower_case, init_checkpoint):
    """Checks a flag against the name of a released checkpoint's folder.

    Args:
        do_lower_case: bool.
        init_checkpoint: path such as "uncased_L-12_H-768_A-12/bert_model.ckpt", or
            None. Other names are not judged.

    Raises:
        ValueError: the checkpoint's text was lower-cased and `do_lower_case` is False,
            or the other way round.

    Source: the function of this name in tokenization.py, 2018, and the models released
    after it.
    """
    match = re.search(r"([A-Za-z0-9_-]+)/bert_model\.ckpt", init_checkpoint or "")
    if match is None:
        return
    name = match.group(1)
    expected = is_lower_cased(name)
    if expected is not None and expected != do_lower_case:
        raise ValueError(
            f"--do_lower_case={do_lower_case} was given with {init_checkpoint}, but "
            f"{name} was trained on {'lower-cased' if expected else 'cased'} "
            f"text; give --do_lower_case={expected}."
        )


def is_lower_cased(name):
    """Returns whether the text of a released model was lower-cased.

    Args:
        name: of its folder, such as "uncased_L-12_H-768_A-12".

    Returns:
        bool, or None for any other name.
    """
    if re.fullmatch(
        r"(wwm_)?uncased_L-.*|(multilingual|chinese)_L-12_H-768_A-12", name
    ):
        return True
    return False if re.fullmatch(r"(wwm_|multi_)?cased_L-.*", name) else None
