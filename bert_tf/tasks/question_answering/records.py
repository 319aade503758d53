"""Questions as records, one per question, to and from the nested format of SQuAD."""

import json
import logging
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from bert_tf.data import in_memory
from bert_tf.data import squad_json

logger = logging.getLogger(__name__)

# The values of a tuple.
FORMS = (("question", "context", "answer"),)


def squad_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
        question, context = (_text(row, name, place) for name in FORMS[0][:2])
        answers = _answers(row, context, place)
        if answers and "answer_start" not in answers[0]:
            text = answers[0]["text"]
            answers[0]["answer_start"] = start = context.find(text)
            if start < 0:
                raise ValueError(
                    f"{place}: the answer {text!r:.60} does not occur in the context; "
                    "expected a part of it, with the same characters."
                )
            num_ambiguous += context.find(text, start + 1) >= 0
        paragraphs.setdefault(context, []).append(
            {
                "id": str(in_memory.json_value(row.get("id", number), place)),
                "question": question,
                "answers": answers,
            }
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
    found = [{"context": text, "qas": qas} for text, qas in paragraphs.items()]
    return {"data": [{"paragraphs": found}]}


def records_of(content: Any, path: str) -> list[dict[str, Any]]:
    """Returns the questions in the content of a SQuAD file as records.

    Args:
        content: the parsed JSON.
        path: name of the file, for messages.

    Raises:
        ValueError: it is not in SQuAD's format.
    """
    records = []
    for paragraph in squad_json.paragraphs(content, path):
        context = squad_json.value(paragraph.record, "context", str, paragraph.place)
        for record in squad_json.value(paragraph.record, "qas", list, paragraph.place):
            question = squad_json.question_text(record, paragraph.place)
            answers = [] if record.get("is_impossible") else record.get("answers")
            own_id = squad_json.value(record, "id", str, paragraph.place)
            records.append(
                {
                    "id": own_id,
                    "question": question,
                    "context": context,
                    "answers": answers,
                }
            )
    return records


def _text(row, name, place):
    if name not in row:
        found = ", ".join(repr(other) for other in row)
        raise ValueError(f"{place} has no {name!r}; its columns are {found}.")
    value = in_memory.json_value(row[name], place)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{place}: the {name} is {value!r:.60}; expected text.")
    return value


def _answers(row, context, place):
    """Returns the answers in SQuAD's form; the start of `answer` may be missing."""
    if "answers" in row:
        return _listed(in_memory.json_value(row["answers"], place), place)
    if "answer" not in row:
        raise ValueError(f"{place} has neither 'answer' nor 'answers'; add one.")
    text = in_memory.json_value(row["answer"], place)
    if text is None or text == "":
        return []
    if not isinstance(text, str):
        raise ValueError(f"{place}: the answer is {text!r:.60}; expected text.")
    start = in_memory.json_value(row.get("answer_start"), place)
    if start is None or start == "":
        return [{"text": text}]
    return [{"text": text, "answer_start": _start(start, place)}]


def _listed(answers, place):
    if isinstance(answers, str):  # A cell of a table.
        answers = _parsed(answers, place)
    if isinstance(answers, Mapping):
        if set(answers) < {"text", "answer_start"}:
            raise ValueError(
                f"{place}: answers has {', '.join(answers)}; expected text and "
                "answer_start."
            )
        texts, starts = answers["text"], answers["answer_start"]
        are_lists = isinstance(texts, list) and isinstance(starts, list)
        if not are_lists or len(texts) != len(starts):
            raise ValueError(
                f"{place}: answers has the text {texts!r:.60} and the answer_start "
                f"{starts!r:.60}; expected two lists of the same length."
            )
        pairs = zip(texts, starts, strict=True)
        answers = [{"text": text, "answer_start": start} for text, start in pairs]
    for answer in answers or ():
        if not isinstance(answer, Mapping) or {"text", "answer_start"} - set(answer):
            raise ValueError(
                f"{place}: an answer is {answer!r:.60}; expected a dictionary with "
                "text and answer_start."
            )
    return [
        {"text": answer["text"], "answer_start": _start(answer["answer_start"], place)}
        for answer in answers or ()
    ]


def _parsed(text, place):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise ValueError(
            f"{place}: answers is {text!r:.60}; expected a list of objects with text "
            "and answer_start."
        ) from None


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
