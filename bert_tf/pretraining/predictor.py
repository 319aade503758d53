"""Fills the masks of texts with a pretrained model, and scores texts.

A masked-word model has no probability for a text as a whole. Masking each piece in turn
and adding up the log-probabilities of the true pieces gives a score that ranks texts in
its place: the pseudo-log-likelihood ("Masked Language Model Scoring", Salazar et al.,
2020).

Shape letters: B batch, S sequence, M masks, K candidates per mask, V vocabulary.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import starting_point
from bert_tf.data import packing
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.tokenization import full
from bert_tf.tokenization import wordpiece

MASK = "[MASK]"
_FEATURES = (*packing.ENCODER_COLUMNS, "masked_lm_positions")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(task_record.TaskRecord):
    """How to fill the masks of texts.

    It is made from a checkpoint. The task.json of a pretraining run describes the
    records that it trains on instead.
    """

    KIND = "pretraining"

    top_k: int = 5  # Candidates per mask of a SavedModel.
    next_sentence: bool = False  # Whether the model has a next-sentence head.

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> pretrainer.BertPretrainer:
        """See `TaskRecord.create_model`."""
        return pretrainer.BertPretrainer(
            config, next_sentence=self.next_sentence, dtype=dtype
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row(packing.PackedPair):
    """The ids of a text with masks, or of a pair of texts."""

    positions: Sequence[int]  # Of the masks; a pair has none.


class MaskPredictor(fine_tuning_predictor.Predictor):
    """A masked-word model; see `fine_tuning.predictor.Predictor`."""

    TOKENIZER = full.FullTokenizer

    task: Task

    def __init__(self, run_dir: str, task: Task, **settings: Any):
        super().__init__(run_dir, task, **settings)
        ids = tf.TensorSpec([None, None], tf.int32)
        features = dict.fromkeys(_FEATURES, ids)
        signatures = {
            self.likeliest: [features, tf.TensorSpec([], tf.int32)],
            self._next_sentence_probabilities: [features],
            self._masked_log_probabilities: [features, ids],
        }
        self._top, self._follow, self._log_probabilities = (
            tf.function(function, input_signature=signature, autograph=False)
            for function, signature in signatures.items()
        )

    @classmethod
    def record_of_checkpoint(cls, settings: fine_tuning_predictor.LoadSettings) -> Task:
        """See `Predictor.record_of_checkpoint`. The tokenizer never splits [MASK]."""
        values = settings.task_values()
        others = (token for token in values.pop("never_split") if token != MASK)
        # The next-sentence head needs a pooler.
        pooler = f"{checkpoint_names.POOLER}dense/kernel"
        has_head = settings.source.head.kind == kinds.Head.PRETRAINING
        return Task(
            **values,
            never_split=(MASK, *others),
            next_sentence=has_head and pooler in settings.source.shapes,
        )

    def predict(
        self,
        texts: Iterable[str | tuple[str, str]],
        *,
        top_k: int = 5,
    ) -> list[dict[str, Any]]:
        """Returns the most likely pieces for each [MASK] of each text.

        Args:
            texts: texts with at least one [MASK] each; or pairs (A, B), if the model
                has a next-sentence head.
            top_k: number of pieces per mask.

        Returns:
            For each text `{"masks": [[{"token": "paris", "probability": 0.9}, ...],
            ...]}`: a list for each mask, with the most likely piece first. For each
            pair `{"next_sentence_probability": 0.9}`, the probability that B follows A.

        Raises:
            ValueError: an input is not a text, has no [MASK], or is too long; or it is
                a pair, and the model has no next-sentence head.
                Texts are never truncated, because a [MASK] could be lost.
        """
        top_k = fine_tuning_predictor.checked_count(top_k, "top_k")
        return self._answered(
            _checked(texts, self.masked_row, self.pair_row),
            lambda rows: self._predictions(rows, top_k),
            length_of=lambda row: len(row.pieces),
            batches_sorted=1,  # All rows are computed at once.
        )

    def score(self, texts: Iterable[str]) -> list[dict[str, Any]]:
        """Returns the pseudo-log-likelihood of each text.

        Args:
            texts: texts without [MASK]. A text of n pieces becomes n sequences.

        Returns:
            For each text a dictionary with `pseudo_log_likelihood`, its means
            `per_piece` and `per_word`, and `pieces`: a list of {"token",
            "log_probability"}.

        Raises:
            ValueError: an input is not a text, is empty, too long, or contains [MASK].
        """
        return self._answered(
            _checked(texts, self.pieces),
            self._scores,
            length_of=len,
            batches_sorted=1,
        )

    def masked_row(self, text: str) -> Row:
        """Returns the row of a text.

        Raises:
            ValueError: there is no [MASK], or the text is too long for the model.
        """
        tokens = ["[CLS]", *self.tokenizer.tokenize(text), "[SEP]"]
        positions = [i for i, token in enumerate(tokens) if token == MASK]
        if not positions:
            raise ValueError(f"Expected at least one [MASK] in the text, got {text!r}.")
        self._check_length(len(tokens))
        return _single(self.tokenizer.convert_tokens_to_ids(tokens), positions)

    def pair_row(self, text_a: str, text_b: str) -> Row:
        """Returns the row of a pair.

        Raises:
            ValueError: the model has no next-sentence head, or the pair is too long.
        """
        if not self.task.next_sentence:
            raise ValueError(
                "The model has no next-sentence head; expected a text with [MASK]."
            )
        ids_a, ids_b = packing.token_ids(self.tokenizer, [text_a, text_b])
        length = len(ids_a) + len(ids_b) + 3
        self._check_length(length)
        row = packing.pack_pair(
            ids_a,
            ids_b,
            max_seq_length=length,
            cls=self.vocabulary.cls_id,
            sep=self.vocabulary.sep_id,
        )
        return Row(**vars(row), positions=())

    def pieces(self, text: str) -> list[str]:
        """Returns the word pieces of a text to score.

        Raises:
            ValueError: the text has no pieces, contains [MASK], or is too long.
        """
        pieces = self.tokenizer.tokenize(text)
        if not pieces:
            raise ValueError(f"The text {text!r:.60} has no word pieces to score.")
        if MASK in pieces:
            raise ValueError(
                f"Cannot score a text with [MASK], got {text!r:.60}; replace [MASK] by "
                "a word, or fill it instead."
            )
        self._check_length(len(pieces) + 2)
        return pieces

    def likeliest(self, features: Mapping[str, tf.Tensor], top_k: tf.Tensor) -> Any:
        """Returns the likeliest pieces at masked positions, in a graph.

        Args:
            features: `input_ids`, `input_mask`, `segment_ids` int32 [B, S] and
                `masked_lm_positions` int32 [B, M].
            top_k: K, at most the size of the vocabulary.

        Returns:
            `values`, the probabilities, float32 [B, M, K], and `indices`, int32.
        """
        outputs = self.model(dict(features))
        # The table of the model may have more rows than there are pieces.
        probabilities = tf.nn.softmax(outputs["masked_lm_logits"])  # [B, M, V]
        return tf.math.top_k(probabilities[:, :, : len(self.vocabulary)], top_k)

    def _check_length(self, num_pieces):
        most = self.task.max_seq_length
        if num_pieces > most:
            raise ValueError(
                f"The text has {num_pieces} word pieces with [CLS] and [SEP], but the "
                f"model takes at most {most}; shorten or split the text."
            )

    def _predictions(self, rows, top_k):
        """Returns the record of each row of `masked_row` or `pair_row`."""
        texts = [row for row in rows if row.positions]
        pairs = [row for row in rows if not row.positions]
        fillings = self._fillings(texts, top_k) if texts else iter(())
        follows = self._followings(pairs) if pairs else iter(())
        return [next(fillings if row.positions else follows) for row in rows]

    def _followings(self, rows):
        """Yields the record of each row of a pair."""
        features = self._counted(_features(rows))
        for probability in self._follow(features).numpy().tolist():
            yield {"next_sentence_probability": probability}

    def _fillings(self, rows, top_k):
        """Yields the record of each row with masks."""
        features = self._counted(_features(rows))
        top = self._top(features, min(top_k, len(self.vocabulary)))
        values, ids = top.values.numpy(), top.indices.numpy()  # [B, M, K]
        for index, row in enumerate(rows):
            masks = []
            for mask in range(len(row.positions)):
                tokens = self.tokenizer.convert_ids_to_tokens(ids[index, mask].tolist())
                pairs = zip(tokens, values[index, mask].tolist(), strict=True)
                masks.append([{"token": t, "probability": p} for t, p in pairs])
            yield {"masks": masks}

    def _scores(self, texts):
        """Yields the record of each list of pieces."""
        mask = self.vocabulary[MASK]
        rows, labels = [], []
        for pieces in texts:
            ids = self.tokenizer.convert_tokens_to_ids(["[CLS]", *pieces, "[SEP]"])
            for position in range(1, len(pieces) + 1):
                masked = [*ids[:position], mask, *ids[position + 1 :]]
                rows.append(_single(masked, [position]))
                labels.append([ids[position]])
        logs: list[float] = []
        for start in range(0, len(rows), self.batch_size):
            part = slice(start, start + self.batch_size)
            computed = self._log_probabilities(_features(rows[part]), labels[part])
            logs += computed.numpy().tolist()
        for pieces in texts:
            scores, logs = logs[: len(pieces)], logs[len(pieces) :]
            num_words = sum(not p.startswith(wordpiece.CONTINUATION) for p in pieces)
            yield {
                "pseudo_log_likelihood": sum(scores),
                "per_piece": sum(scores) / len(pieces),
                "per_word": sum(scores) / num_words,
                "pieces": [
                    {"token": piece, "log_probability": log}
                    for piece, log in zip(pieces, scores, strict=True)
                ],
            }

    def _next_sentence_probabilities(self, features):
        """Returns float32 [B]: the probability that segment B follows segment A."""
        outputs = self.model(features)
        return tf.nn.softmax(outputs["next_sentence_logits"])[:, 0]

    def _masked_log_probabilities(self, features, labels):
        """Returns float32 [B]: the log-probability of each label at its position."""
        outputs = self.model(features)
        logs = tf.nn.log_softmax(outputs["masked_lm_logits"][:, 0])  # [B, V]
        return tf.gather(logs, labels[:, 0], batch_dims=1)


def load(
    run_dir: str,
    settings: fine_tuning_predictor.LoadSettings = (
        fine_tuning_predictor.DEFAULT_SETTINGS
    ),
) -> MaskPredictor:
    """Returns the predictor of a pretraining run or of another pretrained model.

    Raises:
        OSError: a file cannot be read.
        ValueError: the checkpoint is incomplete or was not trained on masked words.
    """
    if settings.start is None:
        start = starting_point.find(run_dir)
        settings = dataclasses.replace(settings, start=start)
    if settings.backend != backends.TENSORFLOW:
        raise ValueError(
            f"backend is {settings.backend!r}, but {run_dir} fills masks, which only "
            "'tensorflow' does; omit backend, or pass head='encoder' for vectors of "
            "texts."
        )
    _check_fills_masks(settings, run_dir)
    task = MaskPredictor.record_of_checkpoint(settings)
    return MaskPredictor(run_dir, task, settings=settings)


def _checked(texts, check, check_pair=None):
    """Returns what `check` makes of each text; names a text that is unsuitable."""
    rows = []
    for index, text in enumerate(given_data.read(texts, "a list of texts")):
        is_pair = isinstance(text, tuple | list) and len(text) == 2
        is_pair = is_pair and all(isinstance(part, str) for part in text)
        if not isinstance(text, str) and (check_pair is None or not is_pair):
            raise ValueError(f"Input {index} is {text!r:.60}; expected a text.")
        try:
            rows.append(check_pair(*text) if is_pair else check(text))
        except ValueError as error:
            raise ValueError(f"Input {index}: {error}") from None
    return rows


def _check_fills_masks(settings, path):
    """Raises a ValueError if a checkpoint cannot fill masks."""
    start = settings.required_start
    if start.config.is_causal:
        raise ValueError(
            f"{path} is a left-to-right model (attention is causal in its "
            "bert_config.json) and cannot fill masks; expected a model trained on "
            "masked words."
        )
    start.vocabulary.check_has_mask()
    for name in checkpoint_heads.HEADS["masked_lm"].weights:
        if name not in settings.source.shapes:
            raise ValueError(
                f"{path} has no masked-word head ({name} is missing); expected a "
                "pretraining checkpoint."
            )


def _single(ids, positions):
    return Row(pieces=ids, segment_ids=[0] * len(ids), positions=positions)


def _features(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Returns the columns of rows, [B, S], and the positions of masks, [B, M]."""
    features = packing.padded_features(rows, max(len(row.pieces) for row in rows))
    num_masks = max(1, *(len(row.positions) for row in rows))
    positions = np.zeros((len(rows), num_masks), np.int32)
    for index, row in enumerate(rows):
        positions[index, : len(row.positions)] = row.positions
    return features | {"masked_lm_positions": positions}
