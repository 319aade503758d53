"""The passages that are searched."""

import dataclasses
import functools
import hashlib
import json

from bert_tf import files
from bert_tf.data import tables
from bert_tf.tasks.retrieval import squad_files

ID_COLUMN = "id"
PASSAGE_COLUMN = "passage"
_TABLES = (".jsonl", ".tsv", ".csv")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corpus:
    """Passages with their ids; one that occurs twice has two ids and one number."""

    path: str  # Where they are from, for messages.
    ids: tuple[str, ...]  # No two the same.
    passages: tuple[str, ...]  # None empty.

    def __len__(self):
        return len(self.ids)

    @functools.cached_property
    def number_of(self) -> dict[str, int]:
        """Text, as `key` has it, -> place of the first passage of that text."""
        numbers: dict[str, int] = {}
        for place, passage in enumerate(self.passages):
            numbers.setdefault(key(passage), place)
        return numbers

    @functools.cached_property
    def numbers(self) -> list[int]:
        """The number of each passage: the first place of its text."""
        return [self.number_of[key(passage)] for passage in self.passages]

    def number_of_text(self, text: str) -> int:
        """Returns the number of a passage that is in the corpus."""
        return self.number_of[key(text)]

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of ids and passages in their order."""
        digest = hashlib.sha256()
        for pair in zip(self.ids, self.passages, strict=True):
            digest.update(json.dumps(pair).encode())
        return digest.hexdigest()


def key(text: str) -> str:
    """Returns what equal texts have in common, however they are broken into lines."""
    return " ".join(text.split())


def create_corpus(texts, path: str) -> Corpus:
    """Returns the corpus of some texts, each once, numbered from 1.

    Args:
        texts: the passages.
        path: where they are from, for messages.
    """
    passages = tuple({key(text): text for text in texts}.values())
    ids = tuple(str(number) for number in range(1, len(passages) + 1))
    return Corpus(path=path, ids=ids, passages=passages)


def read_corpus(path: str, *, broken_rows: list[str] | None = None) -> Corpus:
    """Returns the passages of a file.

    The name says how to read it: `.jsonl` has an object with `passage`, and `id` where
    there is one, a line; `.tsv` and `.csv` have these columns; `.json` is a file of
    SQuAD, whose paragraphs are the passages. Any other is text with a passage a line,
    blank lines being none. Without ids the number of the line is it.

    Args:
        path: the file.
        broken_rows: a list for what is wrong with rows of a table, which are then left
            out; None refuses them.

    Raises:
        OSError: the file cannot be read.
        ValueError: there is no passage, one is empty, two have one id, or a line is
            none of its kind; the message has file and line.
    """
    if path.endswith(".json"):
        found = squad_files.read_paragraphs(path)
    elif path.endswith(_TABLES):
        found = _rows(path, broken_rows)
    else:
        lines = enumerate(files.read_lines(path), start=1)
        found = [(str(number), text) for number, text in lines if text.strip()]
    if not found:
        raise ValueError(f"{path} has no passages; expected one a line.")
    ids, passages = zip(*found, strict=True)
    return Corpus(path=path, ids=ids, passages=passages)


def _rows(path, broken_rows):
    found, place_of = [], {}
    for row in tables.read_table(path, [PASSAGE_COLUMN], broken_rows=broken_rows):
        with tables.row_faults(broken_rows):
            passage = row.cells[PASSAGE_COLUMN]
            if not passage.strip():
                raise ValueError(f"{row.place}: the passage is empty; expected text.")
            own_id = row.cells.get(ID_COLUMN) or row.place.rpartition(":")[2]
            first_place = place_of.setdefault(own_id, row.place)
            if first_place != row.place:
                raise ValueError(
                    f"{row.place}: the id {own_id!r} is that of {first_place} too; "
                    "every passage needs its own."
                )
            found.append((own_id, passage))
    return found
