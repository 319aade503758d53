"""A trained classifier, ready to answer, from nothing but its run folder."""

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import classifier
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import run_setup
from bert_tf.tasks.classification import windows
from bert_tf.tokenization import in_graph

ROWS_PER_CALL = 32


class TrainedClassifier:
    """The last checkpoint of a training run, and all that its model needs.

    Args:
        run_dir: `output_dir` of a training run.

    Attributes:
        task: `classification.task.Task`.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        tokenizer: `InGraphTokenizer`.
        model: `BertClassifier`, `BertMultiLabelClassifier` or `BertRegressor`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained classifier.
    """

    def __init__(self, run_dir: str):
        self.task = run_setup.read_task(run_dir)
        self.config = run_files.read_config(run_dir)
        self.vocabulary = run_files.read_vocabulary(run_dir)
        self.config.check_vocabulary_size(len(self.vocabulary))
        self.tokenizer = in_graph.InGraphTokenizer(
            self.vocabulary, do_lower_case=self.task.do_lower_case
        )
        self.model = classifier.create(
            self.config,
            self.task.label_kind,
            self.task.num_outputs,
            bilstm_on_top=self.task.bilstm_on_top,
        )
        self.model.build()
        loading.load_run(self.model, run_dir)
        columns = ("input_ids", "input_mask", "segment_ids")
        self._logits = tf.function(
            lambda features: self.model(features)["logits"],
            input_signature=[
                {name: tf.TensorSpec([None, None], tf.int32) for name in columns}
            ],
        )

    def predict(self, inputs) -> list[dict]:
        """Returns the model's answers.

        Args:
            inputs: list of texts; of (text, second text) for a model of pairs.

        Returns:
            For each a dict. A model of one class gives `label` and `probabilities` by
            label; one of several classes `labels` and `probabilities`; one of a number
            `value`.

        Raises:
            ValueError: the inputs are not what the model was trained on.
        """
        texts, texts_b = split_pairs(inputs, is_pair=self.task.is_pair)
        if not texts:
            return []
        packed, numbers = windows.pack(
            self.tokenizer,
            texts,
            texts_b=texts_b,
            max_seq_length=self.task.max_seq_length,
            doc_stride=self.task.doc_stride,
        )
        logits = []
        for start in range(0, len(numbers), ROWS_PER_CALL):
            part = slice(start, start + ROWS_PER_CALL)
            longest = int(np.max(np.sum(packed["input_mask"][part], axis=1)))
            rows = {name: column[part, :longest] for name, column in packed.items()}
            logits.append(self._logits(rows).numpy())
        mean = windows.mean_over_windows(np.concatenate(logits), numbers, len(texts))
        return classification_predictions.answers_of(mean, self.task)


def split_pairs(inputs, *, is_pair: bool):
    """Returns a list of first texts, and one of second texts or None.

    Args:
        inputs: list of texts; of (text, second text) where `is_pair`.
        is_pair: whether the model was trained on pairs.

    Raises:
        ValueError: the inputs are not a list, or their items are of the wrong kind.
    """
    if isinstance(inputs, str):
        raise ValueError("Expected a list of texts, got one string.")
    inputs = list(inputs)
    for index, item in enumerate(inputs):
        if not is_pair and not isinstance(item, str):
            raise ValueError(
                f"Input {index} is {item!r:.60}, but the model was trained on single "
                "texts; expected a string."
            )
        if is_pair and not _is_pair_of_texts(item):
            raise ValueError(
                f"Input {index} is {item!r:.60}, but the model was trained on pairs; "
                "expected (text, second text)."
            )
    if not is_pair:
        return inputs, None
    return [first for first, _ in inputs], [second for _, second in inputs]


def _is_pair_of_texts(item):
    is_sequence = isinstance(item, tuple | list) and len(item) == 2
    return is_sequence and all(isinstance(text, str) for text in item)
