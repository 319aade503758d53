"""The base of all predictors: a trained model, loaded from its run folder."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import input_names
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

# Rows per call of the model. Limits the memory for long inputs.
ROWS_PER_CALL = 32


class Predictor:
    """A trained model from the last checkpoint of a run, with its tokenizer.

    The predictor of each task adds `predict(inputs)`.

    Args:
        run_dir: `output_dir` of the training run, or the path of a checkpoint.
        task: record of the task.
        create_tokenizer: class of the tokenizer.
        start: the opened checkpoint, if `run_dir` is not a training run.

    Attributes:
        run_dir: the folder of the run.
        task: record of the task.
        config: size of the encoder.
        vocabulary: the word pieces.
        tokenizer: an instance of `create_tokenizer`.
        model: the task's model with the weights of the run.
        checkpoint: path of the loaded checkpoint.

    Raises:
        OSError: a file of the folder cannot be read.
        ValueError: the folder contains no trained model of the task.
    """

    def __init__(
        self,
        run_dir: str,
        task: task_record.TaskRecord,
        *,
        create_tokenizer: Callable[..., Any] = in_graph.InGraphTokenizer,
        start: starting_point.StartingPoint | None = None,
    ):
        self.run_dir = run_dir
        self.task = task
        if start is None:
            self.config = fine_tuning_run_setup.read_config(run_dir)
            self.vocabulary = fine_tuning_run_setup.read_vocabulary(run_dir)
        else:
            self.config = start.config
            self.vocabulary = cast(vocabulary_module.Vocabulary, start.vocabulary)
        self.config.check_vocabulary_size(len(self.vocabulary))
        self.tokenizer = create_tokenizer(self.vocabulary, **task.tokenizer_arguments())
        self.model = task.create_model(self.config)
        self.model.build()
        if start is None:
            self.checkpoint = loading.load_run(self.model, run_dir)
        else:
            source = cast(source_module.Source, start.source)
            source.check_complete(loading.load_source(self.model, source).missing)
            self.checkpoint = source.path


def compiled(
    function: Callable, columns: Sequence[str] = input_names.SEQUENCE
) -> Callable:
    """Compiles a function of features into one graph for all shapes [B, S].

    Args:
        function: takes features and returns tensors.
        columns: names of the features, each int32 [B, S].
    """
    return tf.function(
        function,
        input_signature=[
            {name: tf.TensorSpec([None, None], tf.int32) for name in columns}
        ],
    )


def without_padding(features: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns features without the trailing positions that are padding in all rows."""
    longest = int(np.max(np.sum(features["input_mask"], axis=1)))
    return {name: column[:, :longest] for name, column in features.items()}


def apply_in_parts(
    function: Callable, features: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Returns the outputs for N rows, computed `ROWS_PER_CALL` at a time.

    Args:
        function: maps features of B rows to a tensor [B, ...].
        features: columns int32 [N, S], N at least 1.

    Returns:
        An array [N, ...].
    """
    outputs = []
    for start in range(0, len(features["input_ids"]), ROWS_PER_CALL):
        part = {n: c[start : start + ROWS_PER_CALL] for n, c in features.items()}
        outputs.append(function(without_padding(part)))
    return np.concatenate(outputs)
