"""Masked positions, drawn one by one as the release did."""

import dataclasses
import random
from collections.abc import Sequence

from bert_tf.pretraining_data import mask_shares
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedTokens:
    """A sequence with some pieces replaced, and what they were."""

    tokens: tuple[str, ...]  # After replacement.
    positions: tuple[int, ...]  # Chosen positions, ascending.
    labels: tuple[str, ...]  # Pieces that were there.


def mask_tokens(
    tokens: Sequence[str],
    rng: random.Random,
    *,
    vocabulary: vocabulary_module.Vocabulary,
    masked_lm_prob: float,
    max_predictions: int,
    whole_words: bool,
    shares: mask_shares.MaskShares,
) -> MaskedTokens:
    """Returns the sequence with masks.

    Args:
        tokens: [CLS] A [SEP] B [SEP].
        rng: every draw comes from it, in the release's order.
        vocabulary: random pieces are drawn from it.
        masked_lm_prob: share of the sequence's length that is chosen.
        max_predictions: the most positions chosen.
        whole_words: whether the pieces of a word are chosen together.
        shares: what becomes of those that are chosen.

    Source: create_masked_lm_predictions of create_pretraining_data.py, 2018.
    """
    candidates = _candidates(tokens, whole_words)
    rng.shuffle(candidates)
    num_wanted = num_predictions(len(tokens), masked_lm_prob, max_predictions)
    output, chosen = list(tokens), []
    for positions in candidates:
        if len(chosen) >= num_wanted:
            break
        if len(chosen) + len(positions) > num_wanted:
            continue
        for position in positions:
            output[position] = _replacement(tokens[position], rng, vocabulary, shares)
            chosen.append(position)
    chosen.sort()
    return MaskedTokens(
        tokens=tuple(output),
        positions=tuple(chosen),
        labels=tuple(tokens[position] for position in chosen),
    )


def num_predictions(length: int, masked_lm_prob: float, max_predictions: int) -> int:
    """Returns how many positions of a sequence are to be chosen."""
    return min(max_predictions, max(1, round(length * masked_lm_prob)))


def _candidates(tokens, whole_words):
    """Returns lists of positions that are chosen together."""
    candidates = []
    for position, token in enumerate(tokens):
        if token in (vocabulary_module.CLS, vocabulary_module.SEP):
            continue
        # As in 2018, also across a [SEP]: B may start inside a word.
        if whole_words and candidates and token.startswith("##"):
            candidates[-1].append(position)
        else:
            candidates.append([position])
    return candidates


def _replacement(token, rng, vocabulary, shares):
    if rng.random() < shares.mask:
        return vocabulary_module.MASK
    if rng.random() < shares.same_of_rest:
        return token
    return vocabulary.tokens[rng.randint(0, len(vocabulary) - 1)]
