"""A trained model, ready to choose, from nothing but its run folder."""

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import multiple_choice
from bert_tf.modeling import numerics
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import features
from bert_tf.tasks.multiple_choice import predictions
from bert_tf.tasks.multiple_choice import run_setup
from bert_tf.tokenization import in_graph

ROWS_PER_CALL = 32


class TrainedMultipleChoice:
    """The last checkpoint of a training run, and all that its model needs.

    Args:
        run_dir: `output_dir` of a training run.

    Attributes:
        task: `multiple_choice.task.Task`.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        tokenizer: `InGraphTokenizer`.
        model: `BertMultipleChoice`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained model of this kind.
    """

    def __init__(self, run_dir: str):
        self.task = run_setup.read_task(run_dir)
        self.config = run_files.read_config(run_dir)
        self.vocabulary = run_files.read_vocabulary(run_dir)
        self.config.check_vocabulary_size(len(self.vocabulary))
        self.tokenizer = in_graph.InGraphTokenizer(
            self.vocabulary, do_lower_case=self.task.do_lower_case
        )
        self.model = multiple_choice.BertMultipleChoice(self.config)
        self.model.build()
        loading.load_run(self.model, run_dir)
        columns = ("input_ids", "input_mask", "segment_ids")
        # Endings are scored one by one: their number is the inputs' own.
        self._scores = tf.function(
            self.model.score_endings,
            input_signature=[
                {name: tf.TensorSpec([None, None], tf.int32) for name in columns}
            ],
        )

    def predict(self, inputs) -> list[dict]:
        """Returns the model's choices.

        Args:
            inputs: list of (start, endings): a text, and a list of two or more texts.

        Returns:
            For each a dict: `label`, the number of the likeliest ending as text;
            `ending`, its text; `probabilities` by number.

        Raises:
            ValueError: an input is something else.
        """
        starts, endings = split_choices(inputs)
        answers = []
        for first in range(0, len(starts), ROWS_PER_CALL):
            part = slice(first, first + ROWS_PER_CALL)
            scores = self._score(starts[part], endings[part])
            ends = np.cumsum([len(own) for own in endings[part]])[:-1]
            for own, texts in zip(np.split(scores, ends), endings[part], strict=True):
                probabilities = np.asarray(numerics.softmax(own))
                answers.append(predictions.prediction(probabilities, texts))
        return answers

    def _score(self, starts, endings):
        packed = features.pack_endings(
            self.tokenizer, starts, endings, max_seq_length=self.task.max_seq_length
        )
        longest = int(np.max(np.sum(packed["input_mask"], axis=1)))
        packed = {name: column[:, :longest] for name, column in packed.items()}
        num_rows = len(packed["input_ids"])
        parts = [
            self._scores({n: c[i : i + ROWS_PER_CALL] for n, c in packed.items()})
            for i in range(0, num_rows, ROWS_PER_CALL)
        ]
        return np.concatenate(parts)


def split_choices(inputs):
    """Returns a list of starts, and one of lists of endings.

    Args:
        inputs: list of (start, endings).

    Raises:
        ValueError: the inputs are not such a list, or a text is empty.
    """
    if isinstance(inputs, str):
        raise ValueError("Expected a list of (start, endings), got one string.")
    inputs = list(inputs)
    for index, item in enumerate(inputs):
        if not _is_choice(item):
            raise ValueError(
                f"Input {index} is {item!r:.60}; expected (start, endings): a text, "
                f"and a list of {examples_module.MIN_ENDINGS} or more texts, none of "
                "them empty."
            )
    return [start for start, _ in inputs], [list(endings) for _, endings in inputs]


def _is_choice(item):
    if not (isinstance(item, tuple | list) and len(item) == 2):
        return False
    start, endings = item
    if not isinstance(endings, tuple | list):
        return False
    texts = [start, *endings]
    is_text = all(isinstance(text, str) and text.strip() for text in texts)
    return is_text and len(endings) >= examples_module.MIN_ENDINGS
