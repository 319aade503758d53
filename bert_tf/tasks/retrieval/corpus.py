"""The corpus: passages to search, and the files that they are read from."""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable

from bert_tf import files
from bert_tf.data import tables
from bert_tf.tasks.retrieval import squad_files

ID_COLUMN = "id"
PASSAGE_COLUMN = "passage"
_TABLES = (".jsonl", ".tsv", ".csv")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corpus:
    """Passages with their ids.

    A text that occurs twice has two ids but one number, so that finding either copy
    counts as finding the passage.
    """

    path: str  # The file, for error messages.
    ids: tuple[str, ...]  # Unique.
    passages: tuple[str, ...]  # Not empty.

    def __len__(self) -> int:
        return len(self.ids)

    @functools.cached_property
    def number_of(self) -> dict[str, int]:
        """The `key` of each text -> the index of the first passage with that text."""
        numbers: dict[str, int] = {}
        for place, passage in enumerate(self.passages):
            numbers.setdefault(key(passage), place)
        return numbers

    @functools.cached_property
    def numbers(self) -> list[int]:
        """The number of each passage: the index of the first one with its text."""
        return [self.number_of[key(passage)] for passage in self.passages]

    def number_of_text(self, text: str) -> int:
        """Returns the number of a text; raises a KeyError if it is not a passage."""
        return self.number_of[key(text)]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the ids and passages in order."""
        digest = hashlib.sha256()
        for pair in zip(self.ids, self.passages, strict=True):
            digest.update(json.dumps(pair).encode())
        return digest.hexdigest()


def key(text: str) -> str:
    """Returns a text with whitespace normalized: texts with equal keys are equal."""
    return " ".join(text.split())


def create_corpus(texts: Iterable[str], path: str) -> Corpus:
    """Returns a corpus of texts without duplicates, with ids from 1.

    Args:
        texts: the passages.
        path: the file that they are from, for error messages.
    """
    passages = tuple({key(text): text for text in texts}.values())
    ids = tuple(str(number) for number in range(1, len(passages) + 1))
    return Corpus(path=path, ids=ids, passages=passages)


def read_corpus(path: str, *, broken_rows: list[str] | None = None) -> Corpus:
    """Returns the passages of a file.

    The file name extension selects the format:

    * `.jsonl`: one object per line with `passage` and optionally `id`.
    * `.tsv`, `.csv`: columns with these names.
    * `.json`: a SQuAD file; its paragraphs are the passages.
    * any other: text with one passage per line; blank lines are ignored.

    A passage without an id has its line number as id.

    Args:
        path: the file.
        broken_rows: a list that collects the messages about invalid rows, which are
            then skipped. None: an invalid row raises an error.

    Raises:
        OSError: the file cannot be read.
        ValueError: there are no passages, one is empty or malformed, or an id repeats.
            The message has file and line.
    """
    name = path.lower()
    if name.endswith(".json"):
        found = squad_files.read_paragraphs(path)
    elif name.endswith(_TABLES):
        found = _rows(path, broken_rows)
    else:
        lines = enumerate(files.read_lines(path), start=1)
        found = [(str(number), text) for number, text in lines if text.strip()]
    if not found:
        raise ValueError(f"{path} has no passages; expected at least one.")
    ids, passages = zip(*found, strict=True)
    return Corpus(path=path, ids=ids, passages=passages)


def _rows(path: str, broken_rows: list[str] | None) -> list[tuple[str, str]]:
    """Returns (id, text) of every row of a table."""
    found = []
    place_of: dict[str, str] = {}  # Id -> where it was first used.
    for row in tables.read_table(path, [PASSAGE_COLUMN], broken_rows=broken_rows):
        with tables.row_faults(broken_rows):
            passage = row.cells[PASSAGE_COLUMN]
            if not passage.strip():
                raise ValueError(f"{row.place}: the passage is empty; expected text.")
            own_id = row.cells.get(ID_COLUMN) or row.place.rpartition(":")[2]
            first_place = place_of.setdefault(own_id, row.place)
            if first_place != row.place:
                raise ValueError(
                    f"{row.place}: the id {own_id!r} is already used by {first_place}; "
                    "give every passage its own id."
                )
            found.append((own_id, passage))
    return found
