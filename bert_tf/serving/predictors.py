"""Loads the predictor of any training run, or of a sentence encoder or ranker."""

import importlib
import os
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import formats
from bert_tf.serving import tasks


def load(run_dir: str) -> Any:
    """Returns the predictor of a run folder, or of a sentence-transformers folder.

    Args:
        run_dir: `output_dir` of a training run, or a sentence encoder or cross-encoder
            in the layout of sentence-transformers.

    Returns:
        An object whose `predict` takes a list and returns one dictionary per item:

        | task | items | dictionary |
        |---|---|---|
        | classification | text, or (text, second text) | `label`, `probabilities` |
        | ... with several labels per text | | `labels`, `probabilities` |
        | ... regression | | `value` |
        | multiple choice | (start, endings) | `label`, `ending`, `probabilities` |
        | question answering | (question, context) | `answer`, `start`, `end`, `score`,
          `no_answer_score` |
        | token classification | text, or list of words | `words`, `tags`, `starts`,
          `ends` |
        | retrieval, bi-encoder | query | `query`, `passages` |
        | retrieval, cross-encoder | (query, passages) | `query`, `passages` |

        `probabilities` has the labels as keys; for multiple choice the labels are the
        numbers of the endings. `passages` are dictionaries with `id`, `score` and
        `text`, the best first.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder is not that of a run, or its task has no predictions.

    Example:
        >>> bert_tf.load("runs/topics").predict(["Rain is coming."])
        [{'label': 'weather', 'probabilities': {'cooking': 0.01, 'weather': 0.99}}]
    """
    kind = _kind(run_dir)
    if kind not in tasks.TASKS:
        raise ValueError(
            f"{run_dir} is a run of the task {kind!r}; expected one of "
            f"{', '.join(tasks.TASKS)}."
        )
    return importlib.import_module(tasks.TASKS[kind].predictor).load(run_dir)


def _kind(run_dir):
    path = os.path.join(run_dir, companion_files.TASK_FILE)
    if not files.exists(path):
        if formats.module_of("hugging_face").is_at(run_dir):
            return "retrieval"
        raise ValueError(
            f"{run_dir} contains no task.json; expected the output_dir of a training "
            "run."
        )
    kind = files.read_json(path).get("task")
    if not isinstance(kind, str):
        raise ValueError(f"{path} does not name the run's task.")
    return kind
