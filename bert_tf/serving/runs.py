"""The model of any training run, from its output_dir, ready to answer."""

from bert_tf.classification import trained
from bert_tf.training import run_folder


def load(run_dir: str) -> trained.TrainedClassifier:
    """Returns the trained model of a run folder.

    Args:
        run_dir: `output_dir` of a training run.

    Returns:
        An object with `predict(inputs)`. A classifier's takes a list of texts, or of
        (text, second text), and returns for each a dict: `label`, and `probabilities`
        by label.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no run, or one of a task that predicts nothing.

    Example:
        >>> bert_tf.load("runs/topics").predict(["Rain is coming."])
        [{'label': 'weather', 'probabilities': {'cooking': 0.01, 'weather': 0.99}}]
    """
    kind = run_folder.RunFolder(run_dir).read_task().get("task")
    if kind not in _MODELS:
        raise ValueError(
            f"{run_dir} is a run of the task {kind!r}; expected one of "
            f"{', '.join(_MODELS)}."
        )
    return _MODELS[kind](run_dir)


_MODELS = {"classification": trained.TrainedClassifier}
