"""The default sampler: text to records, thousands of sequences at once.

It draws from the distributions of the release, but vectorized in NumPy: tokenize the
shard (`tokenized_text`), draw all pairs (`pairs`), shuffle them, and then
lay out (`_columns`), mask (`vectorized_masks`) and optionally pack (`row_packing`) a
block of rows at a time. `release_sampling` is the readable counterpart.

A sequence is [CLS] A [SEP] B [SEP]. The state at [CLS] stands for the whole sequence in
classification and learns that from next-sentence prediction. [SEP] marks the end of a
segment, and `segment_ids` (0 for A, 1 for B) tell every position which segment it is
in, even far from a [SEP] (section 3 of arXiv:1810.04805).

Each sequence has the same number of entries for masked positions, filled or not.
`masked_lm_weights` is 1 for a masked position and 0 for an unused entry, so that the
loss ignores unused entries while all shapes stay fixed.

Shape letters: B batch, S sequence, M masked positions.
"""

from collections.abc import Callable
from collections.abc import Iterator

import numpy as np

from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import row_packing
from bert_tf.pretraining_data import tokenized_text
from bert_tf.pretraining_data import vectorized_masks
from bert_tf.tokenization import vocabulary as vocabulary_module

# Large enough to keep NumPy's overhead small, small enough for the processor's cache.
_ROWS_AT_A_TIME = 2048


class VectorizedSampler:
    """Creates records with the distributions of the 2018 script.

    Args:
        options: what to create.
        vocabulary: the vocabulary that the options name.
    """

    def __init__(
        self,
        options: pretraining_data_options.CreatePretrainingDataOptions,
        vocabulary: vocabulary_module.Vocabulary,
    ):
        self._options = options
        self._vocabulary = vocabulary
        segment = None
        if options.whole_word_segmenter is not None:
            segment = tokenized_text.load_jieba()
        self._table = tokenized_text.WordTable(
            vocabulary, options.do_lower_case, segment
        )
        self._pairs = pairs_module.Sampler(draws_module.Arrays, options)
        self._masks = None
        if not options.dynamic_masking:
            self._masks = vectorized_masks.MaskSampler(vocabulary, options)

    def columns(
        self,
        shard: data_corpus.Shard,
        shard_index: int,
        counts: counts_module.Counts,
        on_progress: Callable[[float], None],
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yields the shard's records in random order.

        Args:
            shard: the text.
            shard_index: index of the shard, which determines the draws with the seed.
            counts: the counts of the shard are added to it.
            on_progress: called with the share of the shard that is finished.

        Yields:
            Columns [B, length] of `schema.pretraining`.

        Raises:
            OSError: the text cannot be read.
            ValueError: the text is not UTF-8, or has one document although sentence
                pairs need two.
        """
        text = self._tokenized(shard, counts, on_progress)
        if not len(text.ids):
            return
        draws = draws_module.Draws(self._options.random_seed, shard_index)
        pairs = self._pairs.sample(text, draws, self._options.dupe_factor)
        num_rows = len(pairs.start_a)
        for done in range(0, num_rows, _ROWS_AT_A_TIME):
            rows = slice(done, done + _ROWS_AT_A_TIME)
            block = pairs_module.Pairs(*(column[rows] for column in pairs))
            columns = self._columns(block, text, draws)
            if self._options.packed_rows:
                columns = row_packing.packed(columns)
            counts.add_columns(columns)
            yield columns
            on_progress(0.5 + 0.5 * done / num_rows)
        on_progress(1.0)

    def _tokenized(self, shard, counts, on_progress):
        text = tokenized_text.tokenize_documents(
            data_corpus.read_shard(shard),
            self._table,
            on_progress=lambda n: on_progress(n / (2 * shard.num_bytes)),
        )
        counts.add_text(
            text, self._vocabulary.unk_id, self._options, shard.spans[0].path
        )
        return text

    def _columns(self, pairs, text, draws):
        """Returns pairs as columns [B, length] of `schema.pretraining`.

        Nothing is masked if masks are drawn in training: then there is a column
        `word_starts`.
        """
        vocabulary, options = self._vocabulary, self._options
        place = np.arange(options.max_seq_length, dtype=np.int32)  # [S]
        end_a = (pairs.length_a + 1).astype(np.int32)[:, None]  # [B, 1], first [SEP].
        end = end_a
        if options.next_sentence:
            end = end_a + (pairs.length_b + 1).astype(np.int32)[:, None]
        input_mask = place <= end  # [B, S]
        is_second = (place > end_a) & input_mask
        is_candidate = _candidates(place, end_a, end)
        # Index in the text for each position: counted from A's first piece up to the
        # first [SEP], and from B's first piece after it.
        starts = np.stack([pairs.start_a - 1, pairs.start_b - end_a[:, 0] - 1], axis=1)
        runs = np.concatenate([end_a + 1, len(place) - 1 - end_a], axis=1)
        source = np.repeat(starts.ravel(), runs.ravel()).reshape(input_mask.shape)
        source += place
        ids = text.ids.take(source, mode="clip")
        np.copyto(ids, 0, where=~is_candidate)
        rows = np.arange(len(ids))
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
        if self._masks is None:
            if starts_word is None:
                is_inside = vectorized_masks.is_inside_word(vocabulary)
                starts_word = ~is_inside[ids] & is_candidate
            columns["word_starts"] = starts_word.view(np.uint8)
        else:
            lengths = end[:, 0] + np.int64(1)
            columns |= self._masks.mask(ids, is_candidate, lengths, draws, starts_word)
        if options.next_sentence:
            labels = pairs.is_random_next[:, None]
            columns["next_sentence_labels"] = labels.view(np.uint8)
        return columns


def _candidates(place: np.ndarray, end_a: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Returns bool [B, S]: whether a position contains a piece that may be masked.

    [CLS] and [SEP] are never masked: they are always in the same role, so predicting
    them teaches nothing.

    Args:
        place: int32 [S], 0 to S - 1.
        end_a: int32 [B, 1], place of the [SEP] after A.
        end: int32 [B, 1], place of the last [SEP].
    """
    return (place > 0) & (place != end_a) & (place < end)
