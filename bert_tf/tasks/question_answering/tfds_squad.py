"""Converts data sets of TensorFlow Datasets into SQuAD's JSON."""

import json
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

_NEEDED = ("id", "context", "question", "answers")


def squad_json_of(features: Any, records: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yields the text of a file in SQuAD's format.

    Args:
        features: of a data set such as squad/v1.1, squad/v2.0, xquad/de or mlqa/de.
        records: its examples as NumPy values. Questions about one context become one
            paragraph.

    Raises:
        ValueError: the data set has other features.
    """
    missing = [name for name in _NEEDED if name not in features]
    if missing:
        raise ValueError(
            f"The TensorFlow dataset has no column {missing[0]}, only "
            f"{', '.join(features)}; expected a data set in SQuAD's form, such as "
            "squad/v1.1."
        )
    questions_of: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        place = (_text(record.get("title", b"")), _text(record["context"]))
        questions_of.setdefault(place, []).append(_question(record))
    articles = [
        {"title": title, "paragraphs": [{"context": context, "qas": questions}]}
        for (title, context), questions in questions_of.items()
    ]
    # One value per line, so that line numbers in error messages are useful.
    yield json.dumps({"data": articles}, ensure_ascii=False, indent=1)


def _question(record):
    answers = record["answers"]
    question = {
        "id": _text(record["id"]),
        "question": _text(record["question"]),
        "answers": [
            {"text": _text(text), "answer_start": int(start)}
            for text, start in zip(
                answers["text"], answers["answer_start"], strict=True
            )
        ],
    }
    if "is_impossible" in record:
        question["is_impossible"] = bool(record["is_impossible"])
    return question


def _text(value):
    return value.decode("utf-8")
