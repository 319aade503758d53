"""Reads queries, passages and the corpus, from tables and text files."""

import dataclasses
import functools
import logging
import os
import re
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.data import in_memory
from bert_tf.data import tables

ID_COLUMN = "id"
QUERY_COLUMN = "query"
PASSAGE_COLUMN = "passage"
NEGATIVES_COLUMN = "negatives"
_TABLES = (".jsonl", ".tsv", ".csv", ".parquet")
logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RankingExample:
    """A query and the passage that answers it, or a passage of a corpus."""

    guid: str  # The row's id, or set and row number: "dev-7".
    query: str = ""  # Empty in a corpus.
    passage: str = ""  # Empty if it is to be predicted.
    negatives: tuple[str, ...] = ()  # Passages known to be wrong.
    place: str = ""  # "file:line", for error messages.


def read_examples(
    path: str,
    set_type: str,
    *,
    with_passages: bool = True,
    broken_rows: list[str] | None = None,
) -> list[RankingExample]:
    """Returns the examples of a file.

    The file name extension selects the format:

    * `.jsonl`: one object per line with `query`, `passage`, and optionally `id` and
      `negatives`, a list of texts.
    * `.tsv`, `.csv`, `.parquet`: columns with these names, except `negatives`.
    * any other, only without passages: text with one query per line; blank lines are
      ignored.

    A query that occurs in several rows has several relevant passages.

    Args:
        path: the file.
        set_type: "train", "dev" or "test", for the ids of rows without one.
        with_passages: whether to read passages and negatives too.
        broken_rows: a list that collects the messages about invalid rows, which are
            then skipped. None: an invalid row raises an error.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has no rows or lacks a column, a text is empty, an id
            repeats, or a query's passage is also among its negatives. The message has
            file and line.
    """
    columns = (QUERY_COLUMN, PASSAGE_COLUMN)[: 1 + with_passages]
    examples = _read(path, columns, f"{set_type}-", broken_rows)
    if not examples and not broken_rows:
        raise ValueError(f"{path} has no queries; expected at least one.")
    return examples


def _read(path, columns, prefix, broken_rows):
    """Returns the examples of a file with different ids; only `columns` are read."""
    if path.lower().endswith(".json"):
        raise ValueError(
            f"{path}: .json files are not read; write a file of JSON lines (.jsonl) "
            f"with {' and '.join(columns)} in each line."
        )
    if len(columns) == 2 or path.lower().endswith(_TABLES):
        examples = _rows(path, columns, prefix, broken_rows)
    else:
        examples = []
        for number, text in enumerate(files.read_lines(path), start=1):
            values: dict[str, Any] = {columns[0]: text, "place": f"{path}:{number}"}
            if text.strip():
                examples.append(RankingExample(guid=f"{prefix}{number}", **values))
    first: dict[str, RankingExample] = {}
    for example in examples:
        with tables.row_faults(broken_rows):
            if example.guid in first:
                raise ValueError(
                    f"{example.place}: the id {example.guid!r} is already used by "
                    f"{first[example.guid].place}; give every row its own id."
                )
            first[example.guid] = example
    return list(first.values())


def _rows(path, columns, prefix, broken_rows):
    """Returns the rows of a table, named by row or, without a prefix, by line."""
    has_lists = len(columns) == 2 and path.lower().endswith(".jsonl")
    lists = (NEGATIVES_COLUMN,) if has_lists else ()
    rows = tables.read_table(path, columns, list_columns=lists, broken_rows=broken_rows)
    examples = []
    for number, row in enumerate(rows, start=1):
        name = f"{prefix}{number}" if prefix else re.split("[: ]", row.place)[-1]
        with tables.row_faults(broken_rows):
            example = RankingExample(
                guid=row.cells.get(ID_COLUMN) or name,
                negatives=row.lists.get(NEGATIVES_COLUMN, ()),
                place=row.place,
                **{column: row.cells[column] for column in columns},
            )
            _check_texts(example, columns)
            examples.append(example)
    return examples


def _check_texts(example, columns):
    for column in columns:
        if not getattr(example, column).strip():
            raise ValueError(f"{example.place}: the {column} is empty; expected text.")
    if not all(text.strip() for text in example.negatives):
        raise ValueError(
            f"{example.place}: a text in negatives is empty; remove it from the list."
        )
    if example.passage and key(example.passage) in set(map(key, example.negatives)):
        raise ValueError(
            f"{example.place}: the passage is also in negatives; expected only "
            "passages that do not answer the query there."
        )


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
        last_first = reversed(list(enumerate(self.passages)))
        return {key(passage): number for number, passage in last_first}

    @functools.cached_property
    def numbers(self) -> list[int]:
        """The number of each passage: the index of the first one with its text."""
        return [self.number_of[key(passage)] for passage in self.passages]

    def relevant(self, examples: Iterable[RankingExample]) -> dict[str, set[int]]:
        """Returns the numbers of the passages that answer each query."""
        numbers: dict[str, set[int]] = {}
        first: dict[str, str] = {}  # The first spelling of each query.
        for example in examples:
            query = first.setdefault(key(example.query), example.query)
            number = self.number_of[key(example.passage)]
            numbers.setdefault(query, set()).add(number)
        return numbers

    def missing(self, examples: Iterable[RankingExample]) -> list[RankingExample]:
        """Returns the examples whose passage is not in the corpus."""
        return [one for one in examples if key(one.passage) not in self.number_of]


def check_passages(
    path: str | None, examples: Sequence[RankingExample], corpus: Corpus
) -> None:
    """Logs how many passages of a training file are not in the corpus.

    Raises:
        ValueError: its queries are, so the columns are probably swapped.
    """
    missing = corpus.missing(examples)
    if not missing:
        return
    known = sum(key(one.query) in corpus.number_of for one in examples)
    if 2 * min(known, len(missing)) > len(examples):
        raise ValueError(
            f"{path}: {known} of {len(examples)} queries are passages of "
            f"{corpus.path}, but {len(missing)} passages are not; swap the columns "
            "query and passage."
        )
    logger.warning(
        "%s: %d of %d passages are not in %s.",
        path,
        len(missing),
        len(examples),
        corpus.path,
    )


def key(text: str) -> str:
    """Returns a text with whitespace normalized: texts with equal keys are equal."""
    return " ".join(text.split())


def read_corpus(path: str, *, broken_rows: list[str] | None = None) -> Corpus:
    """Returns the passages of a file, in one of the formats of `read_examples`.

    Tables have the column `passage` and optionally `id`. A text file has one passage
    per line. A passage without an id has its line number as id.

    Args:
        path: the file.
        broken_rows: as for `read_examples`.

    Raises:
        OSError: the file cannot be read.
        ValueError: there are no passages, one is empty or malformed, or an id repeats.
            The message has file and line.
    """
    rows = _read(path, (PASSAGE_COLUMN,), "", broken_rows)
    if not rows:
        raise ValueError(f"{path} has no passages; expected at least one.")
    return Corpus(
        path=path,
        ids=tuple(row.guid for row in rows),
        passages=tuple(row.passage for row in rows),
    )


def given_rows(data: Any) -> list[dict[str, Any]]:
    """Returns the rows of queries that a Python caller gives, in memory or in a file.

    Raises:
        OSError, ValueError: see `read_examples` and `in_memory.rows_of`.
    """
    if not isinstance(data, str | os.PathLike):
        forms = (("query", "passage"), ("query", "passage", "negatives"))
        return in_memory.rows_of(data, forms)
    return [
        {
            "id": example.guid,
            "query": example.query,
            "passage": example.passage,
            "negatives": list(example.negatives) or None,
        }
        for example in read_examples(os.fspath(data), "train")
    ]


def given_passages(
    corpus: Any, rows: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the rows of a corpus in memory; without one, the passages of queries."""
    if corpus is None:
        texts = dict.fromkeys(str(row.get("passage")) for row in rows)
        return [{"passage": text} for text in texts]
    if in_memory.is_table(corpus):
        return in_memory.rows_of(corpus, ())
    named = [{"passage": one} if isinstance(one, str) else one for one in corpus]
    return in_memory.rows_of(named, (("passage",), ("id", "passage")))
