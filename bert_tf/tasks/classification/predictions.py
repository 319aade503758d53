"""The answers of a classifier, the files that contain them, and the predictor."""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.modeling import classifier
from bert_tf.modeling import output_activation
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module

RELEASE_FILE = "test_results.tsv"
THRESHOLD = 0.5
# The GLUE server accepts answers for STS-B in this range only.
_SUBMITTED_RANGE = (0.0, 5.0)


def answers_of(
    logits: np.ndarray, record: features_module.Record
) -> list[dict[str, Any]]:
    """Returns the answer for each example.

    Args:
        logits: float32 [N, C].
        record: of the model.

    Returns:
        One dictionary per example. For one class: `label`, and `probabilities` by
        class. For several classes: `labels`, the classes whose probability reaches
        `THRESHOLD`, and `probabilities`. For regression: `value`.
    """
    found = classifier.MODELS[record.label_kind].answers(logits)
    if record.label_kind == checkpoint_heads.REGRESSION:
        return [{"value": float(value)} for value in predicted_of(logits, record)]
    rows = np.asarray(found["probabilities"])
    if record.label_kind == checkpoint_heads.SINGLE_LABEL:
        return [prediction(row, record.labels) for row in rows]
    chosen = predicted_of(logits, record)
    return [
        {
            "labels": [record.labels[index] for index in np.flatnonzero(row_chosen)],
            "probabilities": _by_name(row, record.labels),
        }
        for row, row_chosen in zip(rows, chosen, strict=True)
    ]


def predicted_of(logits: np.ndarray, record: features_module.Record) -> np.ndarray:
    """Returns the predictions in the format of the column of labels.

    Returns:
        For one class int [N], for several int32 [N, C], for regression float32 [N].
    """
    if record.label_kind == checkpoint_heads.REGRESSION:
        values = np.asarray(logits)[:, 0]
        return np.asarray(output_activation.apply(values, record.output_activation))
    if record.label_kind == checkpoint_heads.SINGLE_LABEL:
        return np.argmax(logits, axis=-1)
    found = classifier.BertMultiLabelClassifier.answers(logits)
    return (np.asarray(found["probabilities"]) >= THRESHOLD).astype(np.int32)


def prediction(probabilities: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Returns the answer for one example with one class.

    Args:
        probabilities: float [C].
        labels: names of the C classes.

    Returns:
        `label`: the most probable class. `probabilities`: by class.
    """
    by_name = _by_name(probabilities, labels)
    return {"label": labels[int(np.argmax(probabilities))], "probabilities": by_name}


def label_text(answer: Mapping) -> str:
    """Returns the answer in the format of a label: a class, several, or a number."""
    if "value" in answer:
        return f"{answer['value']:.3f}"
    return answer["label"] if "label" in answer else ", ".join(answer["labels"])


def cells_of(answer: Mapping, record: features_module.Record) -> dict[str, str]:
    """Returns an answer as cells of a table, by column.

    For one class: `predicted_label` and its `probability`. For several classes:
    `predicted_labels`, joined as in the training table, and `probability NAME` of each
    class. For regression: `predicted_value`.
    """
    if "value" in answer:
        return {"predicted_value": f"{answer['value']:.6g}"}
    probabilities = answer["probabilities"]
    if "label" in answer:
        label = answer["label"]
        return {"predicted_label": label, "probability": f"{probabilities[label]:.4f}"}
    joined = (record.label_separator or ",").join(answer["labels"])
    return {"predicted_labels": joined} | {
        f"probability {name}": f"{value:.4f}" for name, value in probabilities.items()
    }


def wrong_examples(
    examples: Sequence[examples_module.InputExample],
    answers: Sequence[Mapping],
    is_correct: Sequence[bool] | np.ndarray,
) -> list[model_card.WrongExample]:
    """Returns the examples that were answered incorrectly, for the model card."""
    return [
        model_card.WrongExample(
            text=" ||| ".join(filter(None, example.texts)),
            expected=str(example.label),
            predicted=label_text(answer),
        )
        for example, answer, is_right in zip(examples, answers, is_correct, strict=True)
        if not is_right
    ]


def release_lines(answers: Sequence[Mapping]) -> Iterator[str]:
    """Yields the lines of test_results.tsv in the release's format.

    There is no header, and one line per example: the probabilities in the order of the
    labels (or one number), separated by tabs.
    """
    for answer in answers:
        values = answer.get("probabilities", {"": answer.get("value")}).values()
        # The release wrote the shortest digits that identify a float32.
        yield "\t".join(str(np.float32(value)) for value in values) + "\n"


def submission_lines(
    indices: Sequence[str | None], answers: Sequence[Mapping]
) -> Iterator[str]:
    """Yields the lines of a file for the GLUE server: `index`, tab, `prediction`.

    Args:
        indices: index of each row in the test file. None: its number, from 0.
        answers: returned by `answers_of`.
    """
    yield "index\tprediction\n"
    for number, (index, answer) in enumerate(zip(indices, answers, strict=True)):
        text = label_text(answer)
        if "value" in answer:
            text = f"{np.clip(answer['value'], *_SUBMITTED_RANGE):.3f}"
        yield f"{number if index is None else index}\t{text}\n"


def _by_name(probabilities, labels):
    return {
        label: float(value) for label, value in zip(labels, probabilities, strict=True)
    }


class Predictor(fine_tuning_predictor.Predictor):
    """A trained classifier; see `fine_tuning.predictor.Predictor`.

    An input is a text, or (text, second text) if the model was trained on pairs. For
    the answers see `answers_of`.
    """

    RECORD = features_module.Record
    # The least probability of a class, if a text can have several.
    THRESHOLD = THRESHOLD
    task: features_module.Record
    uses_pooler = True

    @classmethod
    def record_of_checkpoint(
        cls, settings: fine_tuning_predictor.LoadSettings
    ) -> features_module.Record:
        """See `Predictor.record_of_checkpoint`."""
        head, text = settings.source.head, settings.source.text
        numbers = tuple(map(str, range(head.num_labels or 0)))
        is_regression = head.label_kind == checkpoint_heads.REGRESSION
        return features_module.Record(
            labels=() if is_regression else head.labels or numbers,
            label_kind=head.label_kind,
            output_activation=text.output_activation,
            longer_keeps_more=True,
            **settings.task_values(),
        )

    def items(self, inputs: Iterable[Any]) -> Sequence[Any]:
        """See `Predictor.items`."""
        items = input_items.read(inputs, "a list of texts")
        is_pair, trained_on = self.task.is_pair, "the model was trained on"
        if not self._settings.has_task_file and items:
            # A checkpoint without a run does not say whether it was trained on pairs.
            is_pair, trained_on = not isinstance(items[0], str), "the other inputs are"
        if is_pair:
            self.config.check_segments(2)
        for index, item in enumerate(items):
            if not is_pair and not isinstance(item, str):
                raise ValueError(
                    f"Input {index} is {item!r:.60}, but {trained_on} single "
                    "texts; expected a string."
                )
            if is_pair and not _is_pair_of_texts(item):
                raise ValueError(
                    f"Input {index} is {item!r:.60}, but {trained_on} pairs; "
                    "expected (text, second text)."
                )
        return items

    def outputs(self, features: Any) -> Any:
        """See `Predictor.outputs`."""
        return self.model(features)["logits"]

    def answers(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """See `Predictor.answers`."""
        texts, texts_b = items, None
        if not isinstance(items[0], str):
            texts, texts_b = zip(*items, strict=True)
        packed, numbers = features_module.pack(
            self.tokenizer,
            texts,
            texts_b=texts_b,
            max_seq_length=self.task.max_seq_length,
            doc_stride=self.task.doc_stride,
            longer_keeps_more=self.task.longer_keeps_more,
        )
        logits = self._applied(self.apply, packed)
        mean = features_module.mean_over_windows(logits, numbers, len(texts))
        return answers_of(mean, self.task)


def _is_pair_of_texts(item):
    is_sequence = isinstance(item, tuple | list) and len(item) == 2
    return is_sequence and all(isinstance(text, str) for text in item)
