"""Predicted rankings, and the file that they are written to."""

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.tasks.retrieval import examples as examples_module
from bert_tf.training import result_files

JSON_LINES_FILE = "predictions.jsonl"


def ranking(
    query: str,
    numbers: np.ndarray,
    scores: np.ndarray,
    *,
    ids: Sequence[str],
    passages: Sequence[str],
) -> dict[str, Any]:
    """Returns the prediction for one query.

    Args:
        query: the query.
        numbers: int [K], indices of its passages in the corpus, best first.
        scores: float32 [K], their scores.
        ids: the ids of all passages of the corpus.
        passages: the texts of all passages of the corpus.

    Returns:
        `query`, and `passages`: a list of dicts with `id`, `score` and `text`, best
        first.
    """
    found = [
        {"id": ids[number], "score": float(score), "text": passages[number]}
        for number, score in zip(numbers, scores, strict=True)
    ]
    return {"query": query, "passages": found}


def write_predictions(
    output_dir: str,
    examples: Sequence[examples_module.RankingExample],
    rankings: Sequence[dict[str, Any]],
    *,
    suffix: str = "",
) -> str:
    """Writes `predictions.jsonl` and returns its path.

    Each line is an object: `{"id": "test-1", "query": "…", "passages": [{"id": "7",
    "score": 0.83, "text": "…"}, …]}`.

    Args:
        output_dir: an existing folder.
        examples: N examples.
        rankings: N results of `ranking`.
        suffix: added to the file's name; see `result_files.suffix_of`.

    Raises:
        OSError: the file cannot be written.
    """
    name = result_files.with_suffix(JSON_LINES_FILE, suffix)
    path = os.path.join(output_dir, name)
    with files.complete_or_absent(path) as file:
        for example, found in zip(examples, rankings, strict=True):
            record = {"id": example.guid} | found
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path
