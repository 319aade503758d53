"""Loads a predictor: of any training run, or of a checkpoint in any format."""

import dataclasses
import os
from typing import Any
from typing import cast

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import tasks

ENCODER = "encoder"  # The kind of head of a checkpoint that has none.
PRETRAINING = "pretraining"
# Kind of head -> key of `tasks.TASKS`, if they differ.
_TASK_OF_HEAD = {ENCODER: tasks.RETRIEVAL, "masked_lm": PRETRAINING}
# Only in the folder of a run; an old run may lack it, but its task.json is complete.
_RUN_FILE = "run.json"
_NUM_SPECIAL = 3  # [CLS] A [SEP] B [SEP]


def load(
    path: str | os.PathLike[str],
    *,
    head: str | None = None,
    dtype: str | None = None,
    backend: str = backends.TENSORFLOW,
    batch_size: int = fine_tuning_predictor.ROWS_PER_CALL,
    max_seq_length: int | None = None,
    pooling: str | None = None,
    bert_config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
) -> Any:
    """Returns the predictor of a training run, or of a checkpoint in any format.

    Args:
        path: `output_dir` of a training run, pretraining included, or one of its
            checkpoints; or a checkpoint in any format, or the name of a released model
            (see `load_checkpoint`).
        head: the head to use, a key of `checkpoints.heads.HEADS`, such as "encoder" for
            vectors from a model that also has a head. None: what the run or checkpoint
            has.
        dtype: of the computation: "float32", "bfloat16" (or "mixed_bfloat16") or
            "float16" (or "mixed_float16"). Weights stay in float32. None: Keras's
            global policy, and float32 with OpenVINO. With bfloat16 or float16, the
            weights are those of the first call.
        backend: "tensorflow", or "openvino" for Intel's library, which is faster on
            Intel processors (`pip install "bert_tf[openvino]"`). OpenVINO also uses the
            weights of the first call. Only TensorFlow fills the masks of a pretraining
            model.
        batch_size: texts of 128 word pieces per call of the model. A call takes more
            shorter texts, and fewer longer ones.
        max_seq_length: maximum length of a text in word pieces; longer texts are
            truncated. None: as the checkpoint says, or else the model's number of
            positions, for question answering at most 384. A run has its own.
        pooling: the vector of a text: "mean", "cls" or "max". None: as the checkpoint
            says, or else the mean, scaled to length 1. For encoders only.
        bert_config_file: path of the configuration. None: the checkpoint's.
        vocab_file: path of the vocabulary. None: the checkpoint's.
        do_lower_case: whether to lowercase texts. None: as the checkpoint says.

    Returns:
        An object whose `predict` takes any iterable (a list, a generator, a NumPy
        array, a pandas Series, a `tf.data.Dataset`) and returns a list with one
        dictionary per item, in order:

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
        | retrieval, cross-encoder | (query, passage) | `score` |
        | an encoder without a run | text | `embedding` |
        | pretraining | text with [MASK] | `masks` |
        | | (text, second text) | `next_sentence_probability` |

        `probabilities` has the labels as keys; for multiple choice the labels are the
        numbers of the endings. `passages` are dictionaries with `id`, `score` and
        `text`, the best first. `masks` has a list for each [MASK], of dictionaries with
        `token` and `probability`. `next_sentence_probability` is that of the second
        text following the first. Encoders also have `embed(texts)`, which returns an
        array.

        A block of `with bert_tf.progress.reporting_to(bert_tf.ProgressBar()):` shows
        progress bars.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder is not that of a run or a checkpoint, or an argument does
            not fit it.
        ImportError: the checkpoint's format needs a package that is not installed.

    Example:
        >>> bert_tf.load("runs/topics").predict(["Rain is coming."])
        [{'label': 'weather', 'probabilities': {'cooking': 0.01, 'weather': 0.99}}]
        >>> bert_tf.load("bert-base-uncased").predict(["Paris is in [MASK]."])
        >>> bert_tf.load("bert-base-uncased", head="encoder").embed(["Rain is coming."])
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path is {path!r:.60}; expected the path of a run or model.")
    path = os.fspath(path)
    if max_seq_length is not None:
        max_seq_length = fine_tuning_predictor.checked_count(
            max_seq_length, "max_seq_length", minimum=_NUM_SPECIAL
        )
    policy = backends.policy_of(dtype)
    backends.check(backend, policy)
    settings = fine_tuning_predictor.LoadSettings(
        dtype=policy,
        backend=backend,
        batch_size=fine_tuning_predictor.checked_count(batch_size, "batch_size"),
        max_seq_length=max_seq_length,
        pooling=pooling,
    )
    if head is not None and head not in checkpoint_heads.KINDS:
        raise ValueError(
            f"head is {head!r}; expected one of {', '.join(checkpoint_heads.KINDS)}."
        )
    files_given: dict[str, Any] = {
        "bert_config_file": bert_config_file,
        "vocab_file": vocab_file,
        "do_lower_case": do_lower_case,
    }
    folder, task = find_run(path)
    if task not in (None, PRETRAINING) and head in (None, task):
        given = {**files_given, "max_seq_length": max_seq_length, "pooling": pooling}
        _refuse(given, f"{folder} is a training run, which has its own value")
        if folder != path:
            start = starting_point.find(path)
            settings = dataclasses.replace(settings, start=start)
        return tasks.load(task, folder, settings)
    start = starting_point.find(path, **files_given)
    return load_start(path, start, settings, head=head)


def load_start(
    path: str,
    start: starting_point.StartingPoint,
    settings: fine_tuning_predictor.LoadSettings,
    *,
    head: str | None = None,
    argument: str = "head",
) -> Any:
    """Returns the predictor of an opened checkpoint; see `load`.

    Args:
        path: the checkpoint, for messages.
        start: the opened checkpoint.
        settings: how to load it.
        head: see `load`.
        argument: name of the flag or argument with the head, for messages.

    Raises:
        ValueError: as `load`.
    """
    source = cast(source_module.Source, start.source)
    source, _ = source.with_head(head, argument=argument)
    task = _task_of(source, head)
    start = dataclasses.replace(start, source=source)
    settings = dataclasses.replace(settings, start=start, has_task_file=False)
    if task != tasks.RETRIEVAL:
        _refuse({"pooling": settings.pooling}, f"{path} is not an encoder")
    return tasks.load(task, path, settings)


def find_run(path: str) -> tuple[str, str | None]:
    """Returns the folder and the task of a run; the task is None if there is no run.

    Args:
        path: the folder of the run, or one of its checkpoints.

    Raises:
        ValueError: the folder's task.json is damaged, or of an unknown task.
    """
    folder = path
    if not files.is_folder(path) and files.exists(f"{path}.index"):
        folder = os.path.dirname(path) or "."
    if not files.is_folder(folder):
        return path, None
    values = companion_files.read_task(folder)
    task = values.get("task")
    if not isinstance(task, str | None):
        task_file = os.path.join(folder, companion_files.TASK_FILE)
        raise ValueError(f"{task_file} does not name the run's task.")
    if task not in (None, *tasks.TASKS, *checkpoint_heads.KINDS):
        raise ValueError(
            f"{folder} is a run of the task {task!r}; expected one of "
            f"{', '.join(tasks.TASKS)}."
        )
    # A conversion writes a shorter file, which only describes the head.
    is_run = "max_seq_length" in values and companion_files.CONVERTED not in values
    is_run = is_run or files.exists(os.path.join(folder, _RUN_FILE))
    return folder, task if task in tasks.TASKS and is_run else None


def _task_of(source: source_module.Source, head: str | None) -> str:
    """Returns the key of `tasks.TASKS` for a checkpoint without a run."""
    kind = source.head.kind
    if not source.head.is_known:
        candidates = ", ".join(checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS)
        raise ValueError(
            f"{source.path} has an output layer, but does not say what it is for; pass "
            f"head, one of {candidates}."
        )
    is_ranker = source.text.output_activation is not None
    has_one_score = kind == kinds.Head.CLASSIFICATION and source.head.num_labels == 1
    # The folder of a sentence encoder may still have the heads of its pretraining.
    is_encoder = source.text.pooling is not None and kind in ("masked_lm", PRETRAINING)
    if head is None and (is_encoder or (is_ranker and has_one_score)):
        return tasks.RETRIEVAL
    return _TASK_OF_HEAD.get(kind, kind)


def _refuse(given, reason):
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is {value!r}, but {reason}; omit {name}.")
