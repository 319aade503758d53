"""Lays out masked sequences as the columns of the release's records.

A sequence is [CLS] A [SEP] B [SEP]. The state at [CLS] stands for the whole sequence in
classification and learns that from next-sentence prediction. [SEP] marks the end of a
segment, and `segment_ids` (0 for A, 1 for B) tell every position which segment it is
in, even far from a [SEP] (section 3 of arXiv:1810.04805).

Each sequence has the same number of entries for masked positions, filled or not.
`masked_lm_weights` is 1 for a masked position and 0 for an unused entry, so that the
loss ignores unused entries while all shapes stay fixed.

Shape letters: B batch, S sequence, M masked positions.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf.data import packing
from bert_tf.data import schema as schema_module
from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_masks
from bert_tf.pretraining_data import row_packing
from bert_tf.pretraining_data import tokenized_text
from bert_tf.pretraining_data import vectorized_masks
from bert_tf.pretraining_data import vectorized_pairs
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedPair:
    """A packed and masked sentence pair."""

    masked: release_masks.MaskedTokens
    num_first: int  # Length of segment 0: [CLS], A and the first [SEP].
    is_random_next: bool  # True: B comes from another document.


def schema_of(
    options: pretraining_data_options.CreatePretrainingDataOptions,
) -> schema_module.Schema:
    """Returns the schema of the records that the options ask for."""
    return schema_module.pretraining(
        options.max_seq_length,
        options.max_predictions_per_seq,
        options.next_sentence,
        is_masked=not options.dynamic_masking,
        sequences_per_row=row_packing.sequences_per_row(options.max_seq_length)
        if options.packed_rows
        else None,
    )


def columns_of_pairs(
    pairs: Sequence[MaskedPair],
    vocabulary: vocabulary_module.Vocabulary,
    *,
    max_seq_length: int,
    max_predictions: int,
) -> dict[str, np.ndarray]:
    """Returns pairs as columns [B, length] of `schema.pretraining`.

    Args:
        pairs: B pairs.
        vocabulary: ids of the pieces.
        max_seq_length: S.
        max_predictions: M; unused positions contain 0.

    Source: write_instance_to_example_files of create_pretraining_data.py, 2018.
    """
    rows = [
        packing.PackedPair(
            pieces=[vocabulary.ids[token] for token in pair.masked.tokens],
            segment_ids=[
                int(place >= pair.num_first) for place in range(len(pair.masked.tokens))
            ],
        )
        for pair in pairs
    ]
    columns = packing.padded_features(rows, max_seq_length)
    shape = (len(pairs), max_predictions)
    columns["masked_lm_positions"] = np.zeros(shape, np.int32)
    columns["masked_lm_ids"] = np.zeros(shape, np.int32)
    columns["masked_lm_weights"] = np.zeros(shape, np.float32)
    for row, pair in enumerate(pairs):
        num_chosen = len(pair.masked.positions)
        labels = [vocabulary.ids[token] for token in pair.masked.labels]
        columns["masked_lm_positions"][row, :num_chosen] = pair.masked.positions
        columns["masked_lm_ids"][row, :num_chosen] = labels
        columns["masked_lm_weights"][row, :num_chosen] = 1.0
    columns["next_sentence_labels"] = np.array(
        [[int(pair.is_random_next)] for pair in pairs], np.int32
    ).reshape(-1, 1)
    return columns


def columns_of_table(
    pairs: vectorized_pairs.PairTable,
    text: tokenized_text.TokenizedText,
    vocabulary: vocabulary_module.Vocabulary,
    *,
    max_seq_length: int,
    next_sentence: bool,
    masks: vectorized_masks.MaskSampler | None,
    draws: draws_module.Draws,
) -> dict[str, np.ndarray]:
    """Returns pairs as columns [B, length] of `schema.pretraining`.

    Args:
        pairs: B pairs, or B sequences without a second segment.
        text: the text that the pairs point into.
        vocabulary: for the ids of [CLS] and [SEP].
        max_seq_length: length of the rows, S.
        next_sentence: whether the sequences have a second segment and a label.
        masks: draws the masks. None: nothing is masked, and `word_starts` is returned.
        draws: source of all draws.
    """
    place = np.arange(max_seq_length, dtype=np.int32)  # [S]
    end_a = (pairs.length_a + 1).astype(np.int32)[:, None]  # [B, 1], the first [SEP].
    end = end_a
    if next_sentence:
        end = end_a + (pairs.length_b + 1).astype(np.int32)[:, None]
    input_mask = place <= end  # [B, S]
    is_second = (place > end_a) & input_mask
    is_candidate = candidates(place, end_a, end)
    # Index in the text for each position: counted from A's first piece up to the first
    # [SEP], and from B's first piece after it.
    starts = np.stack([pairs.start_a - 1, pairs.start_b - end_a[:, 0] - 1], axis=1)
    runs = np.concatenate([end_a + 1, max_seq_length - 1 - end_a], axis=1)
    source = np.repeat(starts.ravel(), runs.ravel()).reshape(input_mask.shape)
    source += place
    ids = text.ids.take(source, mode="clip")
    np.copyto(ids, 0, where=~is_candidate)
    rows = np.arange(len(pairs))
    ids[:, 0] = vocabulary.cls_id
    ids[rows, end_a[:, 0]] = vocabulary.sep_id
    ids[rows, end[:, 0]] = vocabulary.sep_id
    starts_word = None
    if text.starts_word is not None:
        starts_word = text.starts_word.take(source, mode="clip") & is_candidate
    columns = {
        "input_ids": ids,
        "input_mask": input_mask.view(np.uint8),
        "segment_ids": is_second.view(np.uint8),
    }
    if masks is None:
        if starts_word is None:
            starts_word = (
                ~vectorized_masks.is_inside_word(vocabulary)[ids] & is_candidate
            )
        columns["word_starts"] = starts_word.view(np.uint8)
    else:
        lengths = end[:, 0] + np.int64(1)
        masked = masks.mask(ids, is_candidate, lengths, draws, starts_word)
        columns |= masked.columns()
    if next_sentence:
        columns["next_sentence_labels"] = pairs.is_random_next[:, None].view(np.uint8)
    return columns


def candidates(place: np.ndarray, end_a: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Returns bool [B, S]: whether a position contains a piece that may be masked.

    [CLS] and [SEP] are never masked: they are always in the same role, so predicting
    them teaches nothing.

    Args:
        place: int32 [S], 0 to S - 1.
        end_a: int32 [B, 1], place of the [SEP] after A.
        end: int32 [B, 1], place of the last [SEP].
    """
    return (place > 0) & (place != end_a) & (place < end)
