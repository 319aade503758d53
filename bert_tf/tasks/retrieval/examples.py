"""Examples: a query and its passage, from tables with named columns."""

import dataclasses

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
    """A query, and the passage that answers it."""

    guid: str  # Names the example: "dev-7", or the row's id.
    query: str
    passage: str | None  # None where it is to be found.
    negatives: tuple[str, ...] = ()  # Passages that are known to be wrong.
    place: str = ""  # "file:line", for messages.


def read_examples(
    path: str,
    set_type: str,
    *,
    with_passages: bool = True,
    broken_rows: list[str] | None = None,
) -> list[RankingExample]:
    """Returns the examples of a file.

    The name says how to read it: `.jsonl` has an object with `query`, `passage` and,
    where there are such, `id` and a list `negatives` a line; `.tsv` and `.csv` have
    columns of these names, without lists; `.json` is a file of SQuAD. Without passages
    any other name is text with a query a line, blank lines being none.

    A query that several rows have, with a passage each, has several right passages.

    Args:
        path: the file.
        set_type: "train", "dev" or "test". With the number of the row, counted from 1,
            it names an example.
        with_passages: False: only the queries are read.
        broken_rows: a list for what is wrong with rows, which are then left out; None
            refuses them.

    Raises:
        OSError: the file cannot be read.
        ValueError: there is no row, a column is missing, a text is empty, two rows
            have one id, or a passage is among the query's own negatives; the message
            has file and line.
    """
    if path.endswith(".json"):
        examples = [
            RankingExample(guid=guid, query=question, passage=context, place=path)
            for guid, question, context in squad_files.read_questions(path)
        ]
    elif with_passages or path.endswith((".jsonl", ".tsv", ".csv")):
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


def _rows(path, set_type, with_passages, broken_rows):
    columns = [QUERY_COLUMN, PASSAGE_COLUMN] if with_passages else [QUERY_COLUMN]
    has_lists = with_passages and path.endswith(".jsonl")
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


def _check_negatives(example):
    if not all(text.strip() for text in example.negatives):
        raise ValueError(f"{example.place}: a text of negatives is empty.")
    if example.passage is None:
        return
    wrong = {corpus_module.key(text) for text in example.negatives}
    if corpus_module.key(example.passage) in wrong:
        raise ValueError(
            f"{example.place}: the passage is among the negatives; expected there only "
            "passages that do not answer the query."
        )


def _with_own_ids(examples, broken_rows):
    """Returns the examples whose id no earlier one has."""
    first = {}
    for example in examples:
        with tables.row_faults(broken_rows):
            if example.guid in first:
                raise ValueError(
                    f"{example.place}: the id {example.guid!r} is that of "
                    f"{first[example.guid].place} too; every row needs its own."
                )
            first[example.guid] = example
    return list(first.values())
