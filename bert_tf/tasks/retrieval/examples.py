"""Reads examples, pairs of a query and its passage, from tables and SQuAD files."""

import dataclasses
import typing

from bert_tf import files
from bert_tf.data import tables
from bert_tf.tasks.retrieval import corpus as corpus_module
from bert_tf.tasks.retrieval import squad_files

ID_COLUMN = "id"
QUERY_COLUMN = "query"
PASSAGE_COLUMN = "passage"
NEGATIVES_COLUMN = "negatives"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RankingExample:
    """A query and the passage that answers it."""

    guid: str  # The row's id, or set and row number: "dev-7".
    query: str
    passage: str | None  # None if it is to be predicted.
    negatives: tuple[str, ...] = ()  # Passages known to be wrong.
    place: str = ""  # "file:line", for error messages.

    def require_passage(self) -> str:
        """Returns the passage, which every example to train or evaluate on has."""
        return typing.cast(str, self.passage)


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
    * `.tsv`, `.csv`: columns with these names, except `negatives`.
    * `.json`: a SQuAD file.
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
    name = path.lower()
    if name.endswith(".json"):
        examples = [
            RankingExample(guid=guid, query=question, passage=context, place=path)
            for guid, question, context in squad_files.read_questions(
                path, with_passages=with_passages
            )
        ]
    elif with_passages or name.endswith((".jsonl", ".tsv", ".csv")):
        examples = _rows(path, set_type, with_passages, broken_rows)
    else:
        examples = [
            RankingExample(
                guid=f"{set_type}-{number}",
                query=text,
                passage=None,
                place=f"{path}:{number}",
            )
            for number, text in enumerate(files.read_lines(path), start=1)
            if text.strip()
        ]
    if not examples and not broken_rows:
        raise ValueError(f"{path} has no queries; expected at least one.")
    return _with_own_ids(examples, broken_rows)


def _rows(
    path: str, set_type: str, with_passages: bool, broken_rows: list[str] | None
) -> list[RankingExample]:
    columns = [QUERY_COLUMN, PASSAGE_COLUMN] if with_passages else [QUERY_COLUMN]
    has_lists = with_passages and path.lower().endswith(".jsonl")
    lists = (NEGATIVES_COLUMN,) if has_lists else ()
    rows = tables.read_table(
        path, columns, optional_lists=lists, broken_rows=broken_rows
    )
    examples = []
    for number, row in enumerate(rows, start=1):
        with tables.row_faults(broken_rows):
            for name in columns:
                if not row.cells[name].strip():
                    raise ValueError(
                        f"{row.place}: the {name} is empty; expected text."
                    )
            example = RankingExample(
                guid=row.cells.get(ID_COLUMN) or f"{set_type}-{number}",
                query=row.cells[QUERY_COLUMN],
                passage=row.cells[PASSAGE_COLUMN] if with_passages else None,
                negatives=row.lists.get(NEGATIVES_COLUMN, ()),
                place=row.place,
            )
            _check_negatives(example)
            examples.append(example)
    return examples


def _check_negatives(example: RankingExample) -> None:
    if not all(text.strip() for text in example.negatives):
        raise ValueError(
            f"{example.place}: a text in negatives is empty; remove it from the list."
        )
    if example.passage is None:
        return
    wrong = {corpus_module.key(text) for text in example.negatives}
    if corpus_module.key(example.passage) in wrong:
        raise ValueError(
            f"{example.place}: the passage is also in negatives; expected only "
            "passages that do not answer the query there."
        )


def _with_own_ids(
    examples: list[RankingExample], broken_rows: list[str] | None
) -> list[RankingExample]:
    """Returns the examples whose id is not that of an earlier one."""
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
