"""SQuAD's format: reads its paragraphs, and writes questions from other sources."""

import dataclasses
import json
import logging
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf.data import in_memory

logger = logging.getLogger(__name__)

# The values of a tuple that is a question in memory.
FORMS = (("question", "context", "answer"),)
# A file with a longer context is probably not a SQuAD file.
MAX_CONTEXT_CHARACTERS = 100_000
_KINDS = {list: "a list", str: "text", bool: "true or false", int: "a whole number"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """A question of a paragraph."""

    record: Mapping[str, Any]  # As it is in the file.
    id: str
    text: str  # Not blank.
    place: str  # "file: article 1 (title), paragraph 2, question 3 (id)".


@dataclasses.dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A paragraph of an article."""

    record: Mapping[str, Any]  # As it is in the file.
    context: str  # Neither blank nor too long.
    place: str  # "file: article 1 (title), paragraph 2", for messages.

    def questions(self) -> Iterator[Question]:
        """Yields its questions; raises a ValueError if one lacks id or text."""
        records = value(self.record, "qas", list, self.place)
        for number, record in enumerate(records, start=1):
            place = f"{self.place}, question {number}"
            qas_id = value(record, "id", str, place)
            place += f" ({qas_id})"
            text = _text(record, "question", place)
            yield Question(record=record, id=qas_id, text=text, place=place)


def paragraphs(content: Any, path: str) -> Iterator[Paragraph]:
    """Yields all paragraphs of all articles of a file's parsed JSON, in order.

    Raises:
        ValueError: a list of articles or paragraphs is missing or is not a list, or a
            paragraph has no context that `check_context` accepts.
    """
    for article, record in enumerate(value(content, "data", list, path), start=1):
        article_place = f"{path}: article {article}"
        title = record.get("title") if isinstance(record, Mapping) else None
        if title:
            article_place += f" ({title})"
        records = value(record, "paragraphs", list, article_place)
        for number, paragraph in enumerate(records, start=1):
            place = f"{article_place}, paragraph {number}"
            context = value(paragraph, "context", str, place)
            check_context(context, place)
            yield Paragraph(record=paragraph, context=context, place=place)


def value(record: Any, key: str, kind: type, place: str) -> Any:
    """Returns the value of a key after checking its type.

    Args:
        record: a JSON value that should be an object with the key.
        key: name of the key.
        kind: the expected type: list, str, bool or int.
        place: where the record is, for messages.

    Raises:
        ValueError: the record is not an object, lacks the key, or the type differs.
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"{place}: expected an object with {key}, got {record!r:.60}.")
    if key not in record:
        raise ValueError(
            f"{place}: {key} is missing; expected SQuAD's format, got "
            f"{list(record)!r:.80} instead."
        )
    field = record[key]
    # In Python, unlike JSON, a bool is an int.
    if not isinstance(field, kind) or (kind is int and isinstance(field, bool)):
        raise ValueError(
            f"{place}: expected {key} to be {_KINDS[kind]}, got {field!r:.60}."
        )
    return field


def check_context(text: str, place: str) -> None:
    """Raises a ValueError if a context is blank, or too long."""
    if len(text) > MAX_CONTEXT_CHARACTERS:
        raise ValueError(
            f"{place}: its context has {len(text)} characters, at most "
            f"{MAX_CONTEXT_CHARACTERS} are allowed; split it into paragraphs."
        )
    if not text.strip():
        raise ValueError(f"{place}: its context is blank; expected text.")


def from_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns records as the content of a SQuAD file, one paragraph per context.

    Args:
        rows: each with `question`, `context`, and the correct answer as one of these:

            * `answer`, a text; "" or None if the context does not answer the question.
              `answer_start` is the index of its first character; without it, the
              answer's first occurrence in the context counts.
            * `answers`, a list of {"text", "answer_start"}, or the same as a dictionary
              of lists, as in the data sets of Hugging Face.

            `id` is optional.

    Raises:
        ValueError: a value is missing or has the wrong type, or an answer does not
            occur in its context.
    """
    paragraphs: dict[str, list[dict[str, Any]]] = {}
    num_ambiguous = 0
    for number, row in enumerate(rows, start=1):
        place = f"Row {number}"
        if missing := [name for name in FORMS[0][:2] if name not in row]:
            raise ValueError(
                f"{place} has no {missing[0]!r}; its columns are {list(row)!r:.80}."
            )
        values = _used_values(row, place)
        question, context = (_text(values, name, place) for name in FORMS[0][:2])
        answers = _answers(values, place)
        if answers and "answer_start" not in answers[0]:
            text = answers[0]["text"]
            answers[0]["answer_start"] = start = context.find(text)
            if start < 0:
                raise ValueError(
                    f"{place}: the answer {text!r:.60} does not occur in the context; "
                    "expected a part of it, with the same characters."
                )
            num_ambiguous += context.find(text, start + 1) >= 0
        qas_id = str(values.get("id", number))
        paragraphs.setdefault(context, []).append(
            {"id": qas_id, "question": question, "answers": answers}
        )
    if num_ambiguous:
        logger.warning(
            "%d answers occur several times in their contexts; the first occurrence is "
            "used. Add answer_start if it is another one.",
            num_ambiguous,
        )
    questions = [question for qas in paragraphs.values() for question in qas]
    if not all(question["answers"] for question in questions):  # As in SQuAD 2.0.
        for question in questions:
            question["is_impossible"] = not question["answers"]
    records = [{"context": text, "qas": qas} for text, qas in paragraphs.items()]
    return {"data": [{"paragraphs": records}]}


def _text(record, key, place):
    text = value(record, key, str, place)
    if not text.strip():
        raise ValueError(f"{place}: its {key} is blank; expected text.")
    return text


def _used_values(row, place):
    """Returns the values of a row that count, as JSON values."""
    names = ["question", "context", "id"]
    names += ["answers"] if "answers" in row else ["answer", "answer_start"]
    return {
        name: in_memory.json_value(row[name], place) for name in names if name in row
    }


def _answers(row, place):
    """Returns the answers in SQuAD's form; the start of `answer` may be missing."""
    if "answers" in row:
        return _listed(row["answers"], place)
    if "answer" not in row:
        raise ValueError(f"{place} has neither 'answer' nor 'answers'; add one.")
    if row["answer"] in (None, ""):
        return []
    answer, start = {"text": value(row, "answer", str, place)}, row.get("answer_start")
    if start not in (None, ""):
        answer["answer_start"] = _start(start, place)
    return [answer]


def _listed(answers, place):
    """Returns a list of answers, which a table holds as JSON, and datasets as lists."""
    try:
        if isinstance(answers, str):
            answers = json.loads(answers)
        if isinstance(answers, Mapping):
            columns = answers["text"], answers["answer_start"]
            if not all(isinstance(column, list) for column in columns):
                raise TypeError("expected lists")
            pairs = list(zip(*columns, strict=True))
        else:
            pairs = [(one["text"], one["answer_start"]) for one in answers or ()]
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"{place}: answers is {answers!r:.60}; expected a list of objects with "
            "text and answer_start, or one object with two lists of the same length."
        ) from None
    return [{"text": t, "answer_start": _start(start, place)} for t, start in pairs]


def _start(value, place):
    """Returns the index of a character, which a data frame may hold as a float."""
    try:
        start = int(value)
    except (TypeError, ValueError):
        start = -1
    if start < 0 or start != float(value):
        raise ValueError(
            f"{place}: answer_start is {value!r:.60}; expected the index of the "
            "answer's first character in the context."
        )
    return start
