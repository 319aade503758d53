"""Pseudo-log-likelihood: how likely a text is according to a masked-word model.

A masked-word model has no probability for a text as a whole. Masking each piece in turn
and adding up the log-probabilities of the true pieces gives a score that ranks texts in
its place ("Masked Language Model Scoring", Salazar et al., 2020).

Shape letters: B batch, S sequence, V vocabulary.
"""

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from bert_tf.pretraining import predictions
from bert_tf.tokenization import wordpiece


@dataclasses.dataclass(frozen=True, kw_only=True)
class Likelihood:
    """The pseudo-log-likelihood of one text."""

    pieces: tuple[str, ...]
    # Natural logarithm of each piece's probability when only that piece is masked.
    log_probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        """The sum over all pieces."""
        return sum(self.log_probabilities)

    @property
    def per_piece(self) -> float:
        """The mean over pieces."""
        return self.total / len(self.pieces)

    @property
    def per_word(self) -> float:
        """The total divided by the number of words, without `##` pieces."""
        is_start = [
            not piece.startswith(wordpiece.CONTINUATION) for piece in self.pieces
        ]
        return self.total / sum(is_start)


def record(scored: Likelihood) -> dict[str, Any]:
    """Returns a likelihood as JSON values."""
    return {
        "pseudo_log_likelihood": scored.total,
        "per_piece": scored.per_piece,
        "per_word": scored.per_word,
        "pieces": [
            {"token": piece, "log_probability": value}
            for piece, value in zip(
                scored.pieces, scored.log_probabilities, strict=True
            )
        ],
    }


class LikelihoodScorer:
    """Scores texts with the model of a `MaskFiller`.

    Args:
        filler: the model and its tokenizer.
    """

    def __init__(self, filler: predictions.MaskFiller):
        self._model = filler.model
        self._tokenizer = filler.tokenizer
        self._batch_size = filler.batch_size
        ids = tf.TensorSpec([None, None], tf.int32)
        self._compute = tf.function(
            self._log_probabilities,
            input_signature=[ids, ids, ids, ids],
            autograph=False,
        )

    def score_each(self, texts: Iterable[str]) -> Iterator[Likelihood]:
        """Yields the likelihood of each text, in order.

        A text of n pieces becomes n sequences. Texts share batches.

        Raises:
            ValueError: a text has no pieces, contains [MASK], or is too long.
        """
        return self.score_pieces(map(self.pieces, texts))

    def pieces(self, text: str) -> list[str]:
        """Returns the word pieces of a text to score.

        Raises:
            ValueError: as `score_each`.
        """
        pieces = self._tokenizer.tokenize(text)
        if not pieces:
            raise ValueError(f"The text {text!r:.60} has no word pieces to score.")
        if predictions.MASK in pieces:
            raise ValueError(
                f"Cannot score a text with [MASK], got {text!r:.60}; replace [MASK] by "
                "a word, or fill it instead."
            )
        predictions.check_length(len(pieces) + 2, self._model.config)
        return pieces

    def score_pieces(self, texts: Iterable[list[str]]) -> Iterator[Likelihood]:
        """Yields the likelihood of each result of `pieces`, in order."""
        pieces_of: list[list[str]] = []
        scores: list[float] = []
        masked = itertools.chain.from_iterable(
            self._masked(pieces, pieces_of) for pieces in texts
        )
        while batch := list(itertools.islice(masked, self._batch_size)):
            scores += self._scores(batch)
            while pieces_of and len(scores) >= len(pieces_of[0]):
                pieces = pieces_of.pop(0)
                yield Likelihood(
                    pieces=tuple(pieces), log_probabilities=tuple(scores[: len(pieces)])
                )
                scores = scores[len(pieces) :]

    def _masked(self, pieces, pieces_of):
        """Yields (ids, position of the mask, masked id) for each piece of a text."""
        pieces_of.append(pieces)
        ids = self._tokenizer.convert_tokens_to_ids(["[CLS]", *pieces, "[SEP]"])
        mask = self._tokenizer.vocabulary[predictions.MASK]
        for position in range(1, len(pieces) + 1):
            row = [*ids]
            row[position] = mask
            yield row, position, ids[position]

    def _scores(self, batch):
        features = predictions.padded_rows([(ids, [at]) for ids, at, _ in batch])
        found = self._compute(
            features["input_ids"],
            features["input_mask"],
            features["masked_lm_positions"],
            [[label] for _, _, label in batch],
        )
        return found.numpy().tolist()

    def _log_probabilities(self, input_ids, input_mask, positions, labels):
        """Returns float32 [B]."""
        outputs = self._model(
            {
                "input_ids": input_ids,
                "input_mask": input_mask,
                "segment_ids": tf.zeros_like(input_ids),
                "masked_lm_positions": positions,
            }
        )
        logs = tf.nn.log_softmax(outputs["masked_lm_logits"][:, 0])  # [B, V]
        return tf.gather(logs, labels[:, 0], batch_dims=1)
