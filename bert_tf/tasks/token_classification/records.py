"""Tagged sentences in memory as the text of a column file; see `column_files`."""

import re
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf.data import in_memory
from bert_tf.tasks.token_classification import column_files
from bert_tf.tasks.token_classification import examples

# The values of a tuple.
FORMS = (("words", "tags"),)
# A table with one word per row. All rows of a sentence have the same `sentence`.
WORD_COLUMNS = ("sentence", "word", "tag")
_LINE_BREAK = re.compile(r"[\t\r\n]")


def sentences_of(
    rows: Sequence[Mapping[str, Any]],
) -> list[tuple[list[str], list[str]]]:
    """Returns the words and tags of each sentence.

    Args:
        rows: one per sentence, with the lists `words` and `tags`; or one per word, with
            `sentence`, `word` and `tag`.

    Raises:
        ValueError: a row lacks a value, the rows of a sentence are not consecutive,
            words and tags differ in number, or a word is empty or contains a tab or a
            line break.
    """
    names = FORMS[0]
    if not set(names) <= set(rows[0]):
        rows = _grouped(rows)
    found = []
    for number, row in enumerate(rows, start=1):
        place = f"Sentence {number}"
        words, tags = (_texts(row, name, place) for name in names)
        if len(words) != len(tags) or not words:
            raise ValueError(
                f"{place} has {len(words)} words and {len(tags)} tags; expected the "
                "same number, at least one."
            )
        if len(words) > 1 and words[0].startswith(column_files.DOCUMENT_START):
            raise ValueError(
                f"{place} starts with {words[0]!r}, which marks the start of a "
                "document; make it a sentence of its own."
            )
        found.append((words, tags))
    return found


def rows_of_file(path: str) -> list[dict[str, list[str]]]:
    """Returns the sentences of a column file, with the tags in its last column.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a column file.
    """
    columns = examples.resolved_columns(path, examples.Columns())
    return [
        {"words": list(sentence.words), "tags": list(sentence.tags or ())}
        for sentence in examples.read_sentences(path, columns)
    ]


def column_text(sentences: Sequence[tuple[Sequence[str], Sequence[str]]]) -> str:
    """Returns sentences as the text of a column file: a word and its tag per line."""
    blocks = [
        "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True))
        for words, tags in sentences
    ]
    return "\n".join(blocks)


def _grouped(rows):
    """Returns one row per sentence of a table with one row per word."""
    found: list[dict[str, list[Any]]] = []
    last: str | None = None
    started: set[str] = set()
    for number, row in enumerate(rows, start=1):
        if not set(WORD_COLUMNS) <= set(row):
            raise ValueError(
                f"Row {number} has the columns {', '.join(map(repr, row))}; expected "
                "the lists 'words' and 'tags' of a sentence, or 'sentence', 'word' and "
                "'tag' of a word."
            )
        sentence = _sentence(row, number)
        if sentence != last:
            if sentence in started:
                raise ValueError(
                    f"Row {number} continues sentence {sentence!r:.60} after another "
                    "one; sort the rows, and give each sentence its own value."
                )
            started.add(sentence)
            found.append({"words": [], "tags": []})
        last = sentence
        found[-1]["words"].append(row["word"])
        found[-1]["tags"].append(row["tag"])
    return found


def _sentence(row, number):
    """Returns the value that all rows of a sentence have."""
    value = in_memory.json_value(row["sentence"], f"row {number}, 'sentence'")
    if value is None or value == "":
        raise ValueError(
            f"Row {number} has no 'sentence'; expected the same value in every row of "
            "a sentence, as from frame['sentence'].ffill()."
        )
    return str(value)


def _texts(row, name, place):
    if name not in row:
        raise ValueError(f"{place} has no {name!r}; add it.")
    values = in_memory.json_value(row[name], place)
    if not isinstance(values, list):
        raise ValueError(
            f"{place}: {name} is {values!r:.60}; expected a list of texts."
        )
    for value in values:
        if not isinstance(value, str) or not value.strip() or _LINE_BREAK.search(value):
            raise ValueError(
                f"{place}: {name} contains {value!r:.60}; expected texts without tabs "
                "and line breaks."
            )
    return values
