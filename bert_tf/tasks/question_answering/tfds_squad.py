"""Converts data sets of TensorFlow Datasets into SQuAD's JSON."""

import json
from collections.abc import Iterator
from typing import Any

from bert_tf.data import named_datasets

_NEEDED = ("id", "context", "question", "answers")


def squad_json_of(data: named_datasets.DataSet, split: str) -> Iterator[str]:
    """Yields the text of a file in SQuAD's format.

    Args:
        data: a data set such as squad/v1.1, squad/v2.0, xquad/de or mlqa/de.
        split: of it. Questions about one context become one paragraph.

    Raises:
        ValueError: the data set has other features.
    """
    missing = [name for name in _NEEDED if name not in data.features]
    if missing:
        raise ValueError(
            f"The TensorFlow dataset has no column {missing[0]}, only "
            f"{', '.join(data.features)}; expected a data set in SQuAD's form, such as "
            "squad/v1.1."
        )
    questions_of: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in data.records(split):
        place = (record.get("title", ""), record["context"])
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
        "id": record["id"],
        "question": record["question"],
        "answers": [
            {"text": text, "answer_start": start}
            for text, start in zip(
                answers["text"], answers["answer_start"], strict=True
            )
        ],
    }
    if "is_impossible" in record:
        question["is_impossible"] = record["is_impossible"]
    return question
