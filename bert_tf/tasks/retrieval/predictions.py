"""Rankings of passages, and the file that holds them."""

import json
import os
from collections.abc import Sequence

from bert_tf import files
from bert_tf.tasks.retrieval import examples as examples_module

JSON_LINES_FILE = "predictions.jsonl"


def ranking(query: str, numbers, scores, *, ids, passages) -> dict:
    """Returns the answer for one query.

    Args:
        query: its text.
        numbers: places of its passages in the corpus, the best first.
        scores: their scores.
        ids: of all passages of the corpus.
        passages: their texts.

    Returns:
        `query`; `passages`, a list of dicts `id`, `score`, `text`, the best one first.
    """
    found = [
        {"id": ids[number], "score": float(score), "text": passages[number]}
        for number, score in zip(numbers, scores, strict=True)
    ]
    return {"query": query, "passages": found}


def write_predictions(
    output_dir: str,
    examples: Sequence[examples_module.RankingExample],
    rankings: Sequence[dict],
) -> str:
    """Writes `predictions.jsonl` and returns its path.

    One object a line: `{"id": "test-1", "query": "…", "passages": [{"id": "7", "score":
    0.83, "text": "…"}, …]}`.

    Args:
        output_dir: an existing folder.
        examples: N examples.
        rankings: N dicts that `ranking` returned.

    Raises:
        OSError: the file cannot be written.
    """
    path = os.path.join(output_dir, JSON_LINES_FILE)
    with files.complete_or_absent(path) as file:
        for example, found in zip(examples, rankings, strict=True):
            record = {"id": example.guid} | found
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path
