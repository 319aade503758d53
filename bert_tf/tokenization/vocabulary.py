"""A model's word pieces and their ids."""

import collections
import functools
import hashlib
import os
from collections.abc import Iterable
from collections.abc import Iterator

from bert_tf import files

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
# Every text needs these. Only masked words need [MASK], and the release pads with the
# id 0, regardless of its piece.
_REQUIRED = (UNK, CLS, SEP)
# Far above those of the largest models, which have 500,000 pieces in 10 MB.
_MAX_TOKENS = 2_000_000
_MAX_BYTES = 100_000_000


class Vocabulary:
    """Word pieces in the order of their ids.

    Args:
        tokens: the pieces; a piece for the inside of words starts with "##".
        source: where the tokens come from, for error messages.

    Attributes:
        tokens: tuple of str; the token of id i is `tokens[i]`.
        ids: dict of token to id, ordered by id.

    Raises:
        ValueError: a token is empty, contains a line break or occurs twice, or [UNK],
            [CLS] or [SEP] is missing.
    """

    def __init__(self, tokens: Iterable[str], *, source: str = "vocabulary"):
        self.tokens = tuple(tokens)
        self._source = source
        self.ids: dict[str, int] = collections.OrderedDict()
        for index, token in enumerate(self.tokens):
            if not token or token in self.ids or "\n" in token or "\r" in token:
                raise ValueError(f"{source}:{index + 1}: {self._fault(token)}")
            self.ids[token] = index
        missing = [token for token in _REQUIRED if token not in self.ids]
        if missing:
            raise ValueError(
                f"{source}: {', '.join(missing)} missing among {len(self)} tokens; a "
                f"vocabulary needs all of {', '.join(_REQUIRED)}, one per line."
            )

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Returns the vocabulary in a file with one token per line.

        Spaces and tabs around a token are dropped, as in the release.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is not UTF-8, has CRLF line endings, or its tokens are
                not a vocabulary. The message names the file and the line.
        """
        return cls(_read_tokens(path), source=str(path))

    def save(self, path: str | os.PathLike) -> None:
        """Writes one token per line.

        Raises:
            OSError: the file cannot be written.
        """
        with files.complete_or_absent(path) as file:
            # A single string, because files of TensorFlow have no `writelines`.
            file.write("".join(f"{token}\n" for token in self.tokens))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self.ids

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __getitem__(self, token: str) -> int:
        return self.ids[token]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all tokens in order, in hexadecimal."""
        return hashlib.sha256("\n".join(self.tokens).encode("utf-8")).hexdigest()

    pad_id = property(
        lambda self: self.ids.get(PAD, 0), doc="Id of [PAD]; 0 if there is none."
    )
    unk_id = property(lambda self: self.ids[UNK], doc="Id of [UNK].")
    cls_id = property(lambda self: self.ids[CLS], doc="Id of [CLS].")
    sep_id = property(lambda self: self.ids[SEP], doc="Id of [SEP].")

    @property
    def mask_id(self) -> int:
        """Id of [MASK]; a ValueError if there is none."""
        self.check_has_mask()
        return self.ids[MASK]

    def check_has_mask(self) -> None:
        """Raises a ValueError if the vocabulary has no [MASK]."""
        if MASK not in self.ids:
            raise ValueError(
                f"{self._source}: {MASK} is missing among {len(self)} tokens, and "
                "masked words need it; use the vocabulary of a model that was trained "
                "on masked words."
            )

    def _fault(self, token):
        if not token:
            return "empty line; expected one token per line."
        if token in self.ids:
            line = self.ids[token] + 1
            return f"token {token!r} is already on line {line}; tokens must be unique."
        return f"token {token!r} contains a line break."


def check_size(path: str) -> None:
    """Raises ValueError for a device, a pipe, or a file too large to list words."""
    if files.is_remote(path) or not os.path.exists(path) or os.path.isdir(path):
        return  # Opening it raises an error about it.
    if not os.path.isfile(path):
        raise ValueError(f"{path} is a device or a pipe; expected a text file.")
    if os.path.getsize(path) > _MAX_BYTES:
        raise ValueError(
            f"{path} has {os.path.getsize(path):,} bytes, too many for a vocabulary; "
            f"expected one token per line, at most {_MAX_BYTES:,} bytes."
        )


def _read_tokens(path):
    check_size(path)
    with files.open_file(path, "rb") as file:
        content = file.read().removeprefix(b"\xef\xbb\xbf")
    num_lines = content.count(b"\n")
    if num_lines > _MAX_TOKENS:
        raise ValueError(
            f"{path} has {num_lines:,} lines, too many for a vocabulary; expected one "
            f"token per line, at most {_MAX_TOKENS:,}."
        )
    lines = content.split(b"\n")
    if lines[-1] == b"":
        del lines[-1]
    if not lines:
        raise ValueError(f"{path}: the file is empty; expected one token per line.")
    for number, line in enumerate(lines, start=1):
        if line.endswith(b"\r"):
            raise ValueError(
                f"{path}:{number}: the line ends with CRLF; convert the file to "
                "LF line endings."
            )
        try:
            # Only spaces and tabs: one token of the Chinese vocabulary is U+2028.
            yield line.decode("utf-8").strip(" \t")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}:{number}: not UTF-8 (byte {error.start + 1} of the line); "
                "expected a text file with one token per line."
            ) from None
