"""The model of any training run, from its output_dir, ready to answer."""

import json
import os

from bert_tf import files
from bert_tf.tasks.classification import predictor as classification_predictor
from bert_tf.tasks.multiple_choice import predictor as multiple_choice_predictor
from bert_tf.tasks.question_answering import predictor as question_answering_predictor
from bert_tf.tasks.retrieval import predictor as retrieval_predictor
from bert_tf.tasks.token_classification import (
    predictor as token_classification_predictor,
)


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
    if kind not in _MODELS:
        raise ValueError(
            f"{run_dir} is a run of the task {kind!r}; expected one of "
            f"{', '.join(_MODELS)}."
        )
    return _MODELS[kind](run_dir)


def _kind(run_dir):
    path = os.path.join(run_dir, "task.json")
    if not files.exists(path):
        raise ValueError(
            f"{run_dir} holds no task.json; expected the output_dir of a training run."
        )
    with files.open_file(path) as file:
        try:
            return json.load(file)["task"]
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} does not name the run's task.") from error


_MODELS = {
    "classification": classification_predictor.TrainedClassifier,
    "multiple_choice": multiple_choice_predictor.TrainedMultipleChoice,
    "question_answering": question_answering_predictor.TrainedSpanPredictor,
    "retrieval": retrieval_predictor.load,
    "token_classification": token_classification_predictor.TrainedTagger,
}
