"""Masked positions, drawn one by one as in the release.

A model that attends to both sides can only be trained to predict words that it does not
see. BERT hides 15 % of the pieces in each sequence and predicts those (section 3.1 of
arXiv:1810.04805). The share is a compromise: with fewer, each sequence teaches less,
because only predicted positions have a loss; with more, there is less context to
predict from. It is also why BERT converges more slowly than a left-to-right model,
which predicts every piece (appendix C.1).
"""

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskShares:
    """Shares of the chosen pieces; they add up to 1.

    Why not [MASK] always: the model never sees [MASK] in fine-tuning, so a model that
    learned to encode only masked positions well would fit its later tasks badly. A
    tenth therefore keeps its piece, which pulls the encoding of a visible word towards
    that word, and a tenth gets a random piece. The model cannot tell which positions
    were chosen or changed, so it has to encode every position in its context. Random
    pieces are 1.5 % of all pieces, too few to harm what it learns of the language.

    Source: section 3.1 and appendix A.1 of arXiv:1810.04805. Its Table 8 compares other
    shares: fine-tuning hardly notices them, but feature-based use suffers from [MASK]
    alone, and random pieces alone do worse in every column.
    """

    mask: float = 0.8  # Replaced by [MASK].
    same: float = 0.1  # Kept.
    random: float = 0.1  # Replaced by a random piece of the vocabulary.

    @property
    def same_of_rest(self) -> float:
        """Share that is kept among the pieces that are not replaced by [MASK]."""
        rest = self.same + self.random
        return self.same / rest if rest else 0.0


def mask(
    tokens: Sequence[str],
    rng: random.Random,
    vocabulary: vocabulary_module.Vocabulary,
    options: Any,
) -> tuple[list[str], list[int]]:
    """Returns a sequence with masks, and its chosen positions in ascending order.

    Args:
        tokens: [CLS] A [SEP] B [SEP].
        rng: source of all draws, in the release's order.
        vocabulary: vocabulary that random pieces are drawn from.
        options: how to mask, of create_pretraining_data.

    Source: create_masked_lm_predictions of create_pretraining_data.py, 2018.
    """
    candidates = _candidates(tokens, options.do_whole_word_mask)
    rng.shuffle(candidates)
    wanted = num_wanted(len(tokens), options.masked_lm_prob)
    room = min(options.max_predictions_per_seq, wanted)
    output, shares = list(tokens), options.shares
    chosen: list[int] = []
    for positions in candidates:
        if len(chosen) + len(positions) > room:
            continue  # This whole word does not fit, but a shorter one may.
        # Whole words decide which pieces are chosen, not what replaces them: each piece
        # of a word draws its 80/10/10 separately and is predicted separately. Source:
        # README and create_pretraining_data.py of the release.
        for position in positions:
            token = tokens[position]
            output[position] = _replacement(token, rng, vocabulary, shares)
        chosen += positions
    return output, sorted(chosen)


def num_wanted(length: int, masked_lm_prob: float) -> int:
    """Returns how many positions of a sequence to choose: at least one.

    `max_predictions` limits the number because records and batches need a fixed shape,
    and the model computes its costly scores of the whole vocabulary at these positions
    alone. It should be about max_seq_length * masked_lm_prob, so that full sequences
    lose no masks (README of the release). The length includes [CLS] and [SEP].
    """
    return max(1, round(length * masked_lm_prob))


def _candidates(tokens, whole_words):
    """Returns lists of positions that are chosen together.

    With whole words, a `##` piece joins the word before it. If single pieces are
    masked, the rest of a long word often gives the hidden piece away, so predicting
    whole words is harder and teaches more (README of the release, May 2019). The share
    of masked pieces stays the same.
    """
    candidates: list[list[int]] = []
    for position, token in enumerate(tokens):
        if token in (vocabulary_module.CLS, vocabulary_module.SEP):
            continue
        # As in the release, even across a [SEP]: B may start inside a word.
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
