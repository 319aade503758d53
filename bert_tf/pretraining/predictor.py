"""Fills the masks of texts with a pretrained model."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import input_items
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import predictions
from bert_tf.tokenization import full


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """How to fill the masks of texts.

    It is made from a checkpoint. The task.json of a pretraining run describes the
    records that it trains on instead.
    """

    KIND = "pretraining"

    top_k: int = 5  # Candidates per mask of a SavedModel.

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> pretrainer.BertPretrainer:
        """See `TaskRecord.create_model`."""
        return pretrainer.BertPretrainer(config, next_sentence=False, dtype=dtype)


class MaskPredictor(fine_tuning_predictor.Predictor):
    """A masked-word model; see `fine_tuning.predictor.Predictor`.

    Attributes:
        filler: also fills masks one after the other; see `predictions.MaskFiller`.
    """

    task: Task

    def __init__(self, run_dir: str, settings: fine_tuning_predictor.LoadSettings):
        if settings.backend != backends.TENSORFLOW:
            raise ValueError(
                f"backend is {settings.backend!r}, but {run_dir} fills masks, which "
                "only 'tensorflow' does; omit backend, or pass head='encoder' for "
                "vectors of texts."
            )
        start = settings.required_start
        predictions.check_fills_masks(start, run_dir)
        values = settings.task_values() | predictions.tokenizer_arguments(start)
        super().__init__(
            run_dir,
            Task(**values),
            create_tokenizer=full.FullTokenizer,
            settings=settings,
        )
        self.filler = predictions.MaskFiller(
            self.model, self.tokenizer, batch_size=settings.batch_size
        )

    def predict(
        self,
        texts: Iterable[str],
        *,
        top_k: int = 5,
        progress: progress_module.Progress = progress_module.silent,
    ) -> list[dict[str, Any]]:
        """Returns the most likely pieces for each [MASK] of each text.

        Args:
            texts: texts with at least one [MASK] each.
            top_k: number of pieces per mask.
            progress: see `bert_tf.progress`.

        Returns:
            For each text `{"masks": [[{"token": "paris", "probability": 0.9}, ...],
            ...]}`: a list for each mask, with the most likely piece first.

        Raises:
            ValueError: an input is not a text, has no [MASK], or is too long.
                Texts are never truncated, because a [MASK] could be lost.
        """
        top_k = fine_tuning_predictor.checked_count(top_k, "top_k")
        items = input_items.read(texts, "a list of texts with [MASK]")
        rows = [self._row(index, item) for index, item in enumerate(items)]
        return self._answered(
            rows,
            lambda part: map(predictions.record, self.filler.fillings(part, top_k)),
            progress=progress,
            length_of=lambda row: len(row[0]),
            batches_sorted=1,  # The filler computes all rows at once.
        )

    def _row(self, index, item):
        if not isinstance(item, str):
            raise ValueError(f"Input {index} is {item!r:.60}; expected a text.")
        try:
            row = self.filler.row(item)
        except ValueError as error:
            raise ValueError(f"Input {index}: {error}") from None
        if len(row[0]) > self.task.max_seq_length:
            raise ValueError(
                f"Input {index} has {len(row[0])} word pieces; expected at most "
                f"{self.task.max_seq_length}."
            )
        return row


def load(
    run_dir: str,
    settings: fine_tuning_predictor.LoadSettings = (
        fine_tuning_predictor.DEFAULT_SETTINGS
    ),
) -> MaskPredictor:
    """Returns the predictor of a pretraining run or of another pretrained model."""
    if settings.start is None:
        start = starting_point.find(run_dir)
        settings = dataclasses.replace(settings, start=start)
    return MaskPredictor(run_dir, settings)
