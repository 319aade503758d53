"""A trained model, ready to answer, from nothing but its run folder."""

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import span_predictor
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import run_setup
from bert_tf.tasks.question_answering import spans
from bert_tf.tokenization import full

ROWS_PER_CALL = 32
LOGITS = ("start_logits", "end_logits")


class TrainedSpanPredictor:
    """The last checkpoint of a training run, and all that its model needs.

    Args:
        run_dir: `output_dir` of a training run.

    Attributes:
        task: `question_answering.task.Task`.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        tokenizer: `FullTokenizer`.
        model: `BertSpanPredictor`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained model of this kind.
    """

    def __init__(self, run_dir: str):
        self.task = run_setup.read_task(run_dir)
        self.config = run_files.read_config(run_dir)
        self.vocabulary = run_files.read_vocabulary(run_dir)
        self.config.check_vocabulary_size(len(self.vocabulary))
        self.tokenizer = full.FullTokenizer(
            self.vocabulary, do_lower_case=self.task.do_lower_case
        )
        self.model = span_predictor.BertSpanPredictor(
            self.config, bilstm_on_top=self.task.bilstm_on_top
        )
        self.model.build()
        loading.load_run(self.model, run_dir)
        columns = ("input_ids", "input_mask", "segment_ids")
        self._logits = tf.function(
            lambda features: self.model(features),
            input_signature=[
                {name: tf.TensorSpec([None, None], tf.int32) for name in columns}
            ],
        )

    def predict(
        self, inputs, *, null_score_diff_threshold: float | None = None
    ) -> list[dict]:
        """Returns the model's answers.

        Args:
            inputs: list of (question, context), contexts of any length.
            null_score_diff_threshold: for a model of SQuAD 2.0, there is no answer
                where `no_answer_score - score` is higher; None: as task.json says.

        Returns:
            For each a dict: `answer`, "" for none; `start` and `end`, so that the
            answer is context[start:end] with one space between words; `score` of the
            best answer; `no_answer_score`.

        Raises:
            ValueError: an input is no such pair, or its context is blank or too long.
        """
        examples = examples_of(inputs)
        if not examples:
            return []
        windows = features_module.convert_examples_to_features(
            examples, self.tokenizer, self.task.sizes, is_training=False
        )
        found = question_answering_predictions.predictions_of(
            windows,
            self._window_logits(windows),
            self.task.rules,
            alignment.Aligner(self.vocabulary, do_lower_case=self.task.do_lower_case),
        )
        threshold = self.task.threshold
        if threshold is not None and null_score_diff_threshold is not None:
            threshold = null_score_diff_threshold
        return [
            question_answering_predictions.answer_record(one, one.answer(threshold))
            for one in found
        ]

    def _window_logits(self, windows):
        shape = (len(windows), self.task.max_seq_length)
        found = {name: np.zeros(shape, np.float32) for name in LOGITS}
        for begin in range(0, len(windows), ROWS_PER_CALL):
            numbers = np.arange(begin, min(begin + ROWS_PER_CALL, len(windows)))
            longest = int(windows.lengths[numbers].max())
            columns = windows.rows(numbers)
            outputs = self._logits(
                {name: column[:, :longest] for name, column in columns.items()}
            )
            for name in LOGITS:
                found[name][numbers, :longest] = outputs[name].numpy()
        return [spans.without_padding(windows, found[name]) for name in LOGITS]


def examples_of(inputs) -> list[question_answering_examples.SquadExample]:
    """Returns the examples of (question, context) pairs.

    Raises:
        ValueError: an input is no such pair, or its context is blank or too long.
    """
    if isinstance(inputs, str):
        raise ValueError("Expected a list of (question, context), got one string.")
    contexts = {}
    examples = []
    for index, item in enumerate(inputs):
        is_pair = isinstance(item, tuple | list) and len(item) == 2
        if not is_pair or not all(isinstance(text, str) for text in item):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected (question, context)."
            )
        question, text = item
        if text not in contexts:
            contexts[text] = question_answering_examples.checked_context(
                text, f"Input {index}"
            )
        examples.append(
            question_answering_examples.SquadExample(
                qas_id=str(index), question_text=question, context=contexts[text]
            )
        )
    return examples
