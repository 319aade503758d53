"""Predicts the words behind [MASK].

Shape letters: B batch, S sequence, M masks, K candidates per mask.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import options as pretraining_options
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.tokenization import wordpiece

MASK = "[MASK]"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filling:
    """A candidate for one [MASK]."""

    token: str  # A word piece.
    probability: float  # Among all pieces of the vocabulary.


@dataclasses.dataclass(frozen=True, kw_only=True)
class FilledText:
    """A text whose masks were filled one after the other."""

    text: str  # With the most likely piece in place of each mask.
    fillings: list[list[Filling]]  # The candidates of each mask when it was filled.
    order: list[int]  # Indices of the masks in the order in which they were filled.


class MaskFiller:
    """A pretrained model that predicts the words behind [MASK].

    Args:
        model: the built model with its weights.
        tokenizer: a tokenizer that never splits [MASK].
        batch_size: texts per batch.
    """

    def __init__(
        self,
        model: pretrainer.BertPretrainer,
        tokenizer: full.FullTokenizer,
        *,
        batch_size: int = 32,
    ):
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        ids = tf.TensorSpec([None, None], tf.int32)
        self._top = tf.function(
            self._likeliest,
            input_signature=[ids, ids, ids, tf.TensorSpec([], tf.int32)],
            autograph=False,
        )

    def fill(self, text: str, *, top_k: int = 5) -> list[list[Filling]]:
        """Returns the most likely pieces for each [MASK] of a text.

        Args:
            text: a text with at least one [MASK].
            top_k: number of pieces per mask, K.

        Returns:
            For each mask, a list of K fillings with the most likely first.

        Raises:
            ValueError: there is no [MASK], or the text is too long for the model.
        """
        [fillings] = self.fill_each([text], top_k=top_k)
        return fillings

    def fill_each(
        self, texts: Iterable[str], *, top_k: int = 5
    ) -> Iterator[list[list[Filling]]]:
        """Yields `fill(text)` for each text, computed in batches.

        Raises:
            ValueError: as `fill`.
        """
        part = []
        for text in texts:
            part.append(self.row(text))
            if len(part) == self.batch_size:
                yield from self.fillings(part, top_k)
                part = []
        if part:
            yield from self.fillings(part, top_k)

    def fill_iteratively(self, text: str, *, top_k: int = 5) -> FilledText:
        """Returns the text with all masks filled, the most certain one first.

        In one pass the model predicts each mask independently of the others. So it
        computes the text again after each filling, and later words fit earlier ones.

        Args:
            text: a text with at least one [MASK].
            top_k: number of candidates to return for each mask.

        Raises:
            ValueError: as `fill`.
        """
        ids, positions = self.row(text)
        fillings: list[list[Filling]] = [[] for _ in positions]
        order: list[int] = []
        while len(order) < len(positions):
            left = [i for i in range(len(positions)) if i not in order]
            [found] = self.fillings([(ids, [positions[i] for i in left])], top_k)
            best = max(range(len(left)), key=lambda i: found[i][0].probability)
            chosen = left[best]
            fillings[chosen] = found[best]
            ids[positions[chosen]] = self.tokenizer.vocabulary[found[best][0].token]
            order.append(chosen)
        tokens = [found[0].token for found in fillings]
        return FilledText(text=_filled(text, tokens), fillings=fillings, order=order)

    def row(self, text: str) -> tuple[list[int], list[int]]:
        """Returns the ids of a text, and the positions of its masks.

        Raises:
            ValueError: as `fill`.
        """
        tokens = ["[CLS]", *self.tokenizer.tokenize(text), "[SEP]"]
        positions = [i for i, token in enumerate(tokens) if token == MASK]
        if not positions:
            raise ValueError(f"Expected at least one [MASK] in the text, got {text!r}.")
        check_length(len(tokens), self.model.config)
        return self.tokenizer.convert_tokens_to_ids(tokens), positions

    def fillings(
        self, rows: Sequence[tuple[list[int], list[int]]], top_k: int
    ) -> list[list[list[Filling]]]:
        """Returns the fillings of each of several results of `row`."""
        features = padded_rows(rows)
        size = min(top_k, len(self.tokenizer.vocabulary))
        values, ids = (
            part.numpy()
            for part in self._top(
                features["input_ids"],
                features["input_mask"],
                features["masked_lm_positions"],
                size,
            )
        )  # [B, M, K]
        return [
            [
                self._named(ids[row, mask], values[row, mask])
                for mask in range(len(positions))
            ]
            for row, (_, positions) in enumerate(rows)
        ]

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
        real = probabilities[:, :, : len(self.tokenizer.vocabulary)]
        return tf.math.top_k(real, top_k)

    def _likeliest(self, input_ids, input_mask, positions, top_k):
        features = {
            "input_ids": input_ids,
            "input_mask": input_mask,
            "segment_ids": tf.zeros_like(input_ids),
            "masked_lm_positions": positions,
        }
        return self.likeliest(features, top_k)

    def _named(self, ids, probabilities):
        tokens = self.tokenizer.convert_ids_to_tokens([int(i) for i in ids])
        return [
            Filling(token=token, probability=float(probability))
            for token, probability in zip(tokens, probabilities, strict=True)
        ]


def check_length(num_pieces: int, config: config_module.BertConfig) -> None:
    """Raises a ValueError if a text, which is never truncated, is too long.

    Args:
        num_pieces: with [CLS] and [SEP].
        config: of the model.
    """
    most = config.max_position_embeddings
    if num_pieces > most:
        raise ValueError(
            f"The text has {num_pieces} word pieces with [CLS] and [SEP], but the "
            f"model has {most} positions; shorten or split the text."
        )


def padded_rows(
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> dict[str, np.ndarray]:
    """Returns `input_ids`, `input_mask` [B, S] and `masked_lm_positions` [B, M].

    Args:
        rows: B pairs of ids and mask positions, of any lengths.
    """
    length = max(len(ids) for ids, _ in rows)
    num_masks = max(len(positions) for _, positions in rows)
    features = {
        "input_ids": np.zeros((len(rows), length), np.int32),
        "input_mask": np.zeros((len(rows), length), np.int32),
        "masked_lm_positions": np.zeros((len(rows), num_masks), np.int32),
    }
    for index, (ids, positions) in enumerate(rows):
        features["input_ids"][index, : len(ids)] = ids
        features["input_mask"][index, : len(ids)] = 1
        features["masked_lm_positions"][index, : len(positions)] = positions
    return features


def record(fillings: Sequence[Sequence[Filling]]) -> dict[str, Any]:
    """Returns the fillings of a text as values for JSON.

    Returns:
        `masks`: for each mask a list of dicts with `token` and `probability`.
    """
    return {"masks": [[dataclasses.asdict(one) for one in mask] for mask in fillings]}


def load(
    options: pretraining_options.FillMaskOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> MaskFiller:
    """Returns the model of a checkpoint, ready to fill masks.

    Args:
        options: the checkpoint. Configuration, vocabulary and casing default to its
            own.
        progress: see `bert_tf.progress`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the checkpoint is incomplete or was not trained on masked words.
    """
    start = starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        progress=progress,
    )
    source = check_fills_masks(start, options.init_checkpoint)
    # `find` was given a checkpoint, so it returns a vocabulary.
    vocabulary = cast(vocabulary_module.Vocabulary, start.vocabulary)
    tokenizer = full.FullTokenizer(vocabulary, **tokenizer_arguments(start))
    model = pretrainer.BertPretrainer(start.config, next_sentence=False)
    source.check_complete(loading.load_source(model, source).missing)
    return MaskFiller(model, tokenizer, batch_size=options.batch_size)


def tokenizer_arguments(start: starting_point.StartingPoint) -> dict[str, Any]:
    """Returns the arguments of a tokenizer that never splits [MASK]."""
    arguments = start.tokenizer_arguments()
    others = (token for token in arguments["never_split"] if token != MASK)
    return arguments | {"never_split": (MASK, *others)}


def check_fills_masks(
    start: starting_point.StartingPoint, path: str
) -> source_module.Source:
    """Returns the source of a checkpoint that can fill masks.

    Args:
        start: the opened checkpoint.
        path: the checkpoint, for messages.

    Raises:
        ValueError: the checkpoint was not trained on masked words, or its vocabulary
            has no [MASK].
    """
    if start.config.is_causal:
        raise ValueError(
            f"{path} is a left-to-right model (attention is causal in its "
            "bert_config.json) and cannot fill masks; expected a model trained on "
            "masked words."
        )
    cast(vocabulary_module.Vocabulary, start.vocabulary).check_has_mask()
    source = cast(source_module.Source, start.source)
    for name in checkpoint_heads.HEADS["masked_lm"].weights:
        if name not in source.shapes:
            raise ValueError(
                f"{path} has no masked-word head ({name} is missing); expected a "
                "pretraining checkpoint."
            )
    return source


def _filled(text, tokens):
    """Returns a text with tokens for its masks; joins `##` pieces to their word."""
    first, *parts = text.split(MASK)
    filled = first
    for token, part in zip(tokens, parts, strict=True):
        if token.startswith(wordpiece.CONTINUATION):
            filled = filled.rstrip() + token.removeprefix(wordpiece.CONTINUATION) + part
        else:
            filled += token + part
    return filled
