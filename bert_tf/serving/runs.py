"""The model of any training run, from its output_dir, ready to answer."""

import importlib
import json
import os

from bert_tf import files
from bert_tf.checkpoints import companion_files

# Kind of task -> the module whose `load` returns its predictor. It is imported when a
# run needs it, so that one task works where another cannot be imported.
_PREDICTORS = {
    "classification": "bert_tf.tasks.classification.predictor",
    "multiple_choice": "bert_tf.tasks.multiple_choice.predictor",
    "question_answering": "bert_tf.tasks.question_answering.predictor",
    "retrieval": "bert_tf.tasks.retrieval.predictor",
    "token_classification": "bert_tf.tasks.token_classification.predictor",
}


def load(run_dir: str):
    """Returns the trained model of a run folder.

    Args:
        run_dir: `output_dir` of a training run.

    Returns:
        An object with `predict(inputs)`. A classifier's takes a list of texts, or of
        (text, second text), and returns for each a dict: `label` and `probabilities`
        by label; where a text may have several classes `labels` for `label`; and of a
        number `value` alone. A multiple choice model's takes a list of (start,
        endings) and returns for each a dict: `label`, the number of the likeliest
        ending as text, `ending`, its text, and `probabilities` by number. A question
        answering model's takes a list of (question, context) and returns for each a
        dict: `answer`, `start`, `end`, `score`, `no_answer_score`. A tagger's takes a
        list of texts, or of lists of words, and returns for each a dict: `words`,
        `tags`, `starts`, `ends`. A bi-encoder's takes a list of queries, a
        cross-encoder's one of (query, passages); both return for each a dict: `query`,
        and `passages`, dicts `id`, `score`, `text`, the best first.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no run, or one of a task that predicts nothing.

    Example:
        >>> bert_tf.load("runs/topics").predict(["Rain is coming."])
        [{'label': 'weather', 'probabilities': {'cooking': 0.01, 'weather': 0.99}}]
    """
    kind = _kind(run_dir)
    if kind not in _PREDICTORS:
        raise ValueError(
            f"{run_dir} is a run of the task {kind!r}; expected one of "
            f"{', '.join(_PREDICTORS)}."
        )
    return importlib.import_module(_PREDICTORS[kind]).load(run_dir)


def _kind(run_dir):
    path = os.path.join(run_dir, companion_files.TASK_FILE)
    if not files.exists(path):
        raise ValueError(
            f"{run_dir} holds no task.json; expected the output_dir of a training run."
        )
    with files.open_file(path) as file:
        try:
            return json.load(file)["task"]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} does not name the run's task.") from error
