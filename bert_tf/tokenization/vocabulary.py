"""The pieces that a model knows, and their ids."""

import collections
import functools
import hashlib

from bert_tf import files

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)


class Vocabulary:
    """Word pieces in the order of their ids.

    Args:
        tokens: iterable of str; a piece inside a word starts with "##".
        source: where they come from, for error messages.

    Attributes:
        tokens: tuple of str; the token of id i is `tokens[i]`.
        ids: dict of token to id, in the order of the ids.

    Raises:
        ValueError: there are no tokens, one is empty, has a line end in it or occurs
            twice, or a special token is missing.
    """

    def __init__(self, tokens, *, source="vocabulary"):
        self.tokens = tuple(tokens)
        self.ids = collections.OrderedDict()
        for index, token in enumerate(self.tokens):
            if not token or token in self.ids or "\n" in token or "\r" in token:
                raise ValueError(f"{source}:{index + 1}: {self._fault(token)}")
            self.ids[token] = index
        missing = [token for token in SPECIAL_TOKENS if token not in self.ids]
        if missing:
            raise ValueError(
                f"{source}: {', '.join(missing)} missing among {len(self)} tokens; a "
                f"vocabulary needs all of {', '.join(SPECIAL_TOKENS)}, one a line."
            )

    @classmethod
    def load(cls, path):
        """Returns the vocabulary in a file with one token a line.

        Spaces and tabs around a token are dropped, as in 2018.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not UTF-8, has CRLF line ends, or its tokens are not a
                vocabulary; the message has file and line.
        """
        return cls(_read_tokens(path), source=str(path))

    def save(self, path):
        """Writes one token a line.

        Raises:
            OSError: the file cannot be written.
        """
        with files.complete_or_absent(path) as file:
            # One string: a file of TensorFlow has no `writelines`.
            file.write("".join(f"{token}\n" for token in self.tokens))

    def __len__(self):
        return len(self.tokens)

    def __contains__(self, token):
        return token in self.ids

    def __iter__(self):
        return iter(self.tokens)

    def __getitem__(self, token):
        return self.id_of(token)

    def id_of(self, token):
        """Returns the id of a token.

        Raises:
            KeyError: there is no such token.
        """
        return self.ids[token]

    def token_of(self, token_id):
        """Returns the token of an id.

        Raises:
            IndexError: there is no such id.
        """
        if not 0 <= token_id < len(self):
            raise IndexError(f"Expected an id from 0 to {len(self) - 1}: {token_id}.")
        return self.tokens[token_id]

    @functools.cached_property
    def fingerprint(self):
        """SHA-256 of all tokens in order, as hexadecimal digits."""
        return hashlib.sha256("\n".join(self.tokens).encode("utf-8")).hexdigest()

    pad_id = property(lambda self: self.ids[PAD], doc="Id of [PAD].")
    unk_id = property(lambda self: self.ids[UNK], doc="Id of [UNK].")
    cls_id = property(lambda self: self.ids[CLS], doc="Id of [CLS].")
    sep_id = property(lambda self: self.ids[SEP], doc="Id of [SEP].")
    mask_id = property(lambda self: self.ids[MASK], doc="Id of [MASK].")

    def _fault(self, token):
        if not token:
            return "empty line; expected a token on every line."
        if token in self.ids:
            line = self.ids[token] + 1
            return f"token {token!r} is already on line {line}; each may occur once."
        return f"token {token!r} has a line end in it."


def _read_tokens(path):
    with files.open_file(path, "rb") as file:
        lines = file.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        del lines[-1]
    if not lines:
        raise ValueError(f"{path}: the file is empty; expected one token a line.")
    for number, line in enumerate(lines, start=1):
        if line.endswith(b"\r"):
            raise ValueError(
                f"{path}:{number}: the line ends with CRLF; convert the file's line "
                "ends to LF."
            )
        try:
            # Not all white space: a line of the Chinese vocabulary is U+2028 alone.
            yield line.decode("utf-8").strip(" \t")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}:{number}: not UTF-8 (byte {error.start + 1} of the line); "
                "expected a text file with one token a line."
            ) from None
