"""The default sampler: text to records, thousands of sequences at once.

It draws from the distributions of the release, but vectorized in NumPy: tokenize the
shard (`tokenized_text`), draw all pairs (`vectorized_pairs`), shuffle them, and then
lay out (`features`), mask (`vectorized_masks`) and optionally pack (`row_packing`) a
block of rows at a time. `release_sampling` is the readable counterpart.
"""

from collections.abc import Callable
from collections.abc import Iterator

import numpy as np

from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import features
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import row_packing
from bert_tf.pretraining_data import segmentation
from bert_tf.pretraining_data import tokenized_text
from bert_tf.pretraining_data import vectorized_masks
from bert_tf.pretraining_data import vectorized_pairs
from bert_tf.pretraining_data import word_table
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
        segmenter = None
        if options.whole_word_segmenter is not None:
            segmenter = segmentation.create_segmenter(options.whole_word_segmenter)
        self._table = word_table.WordTable(vocabulary, options.do_lower_case, segmenter)
        self._masks = None
        if not options.dynamic_masking:
            self._masks = vectorized_masks.MaskSampler(
                vocabulary,
                masked_lm_prob=options.masked_lm_prob,
                max_predictions=options.max_predictions_per_seq,
                whole_words=options.do_whole_word_mask,
                spans=options.masking == "span",
                shares=options.shares,
            )

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
        if not text.num_documents:
            return
        draws = draws_module.Draws(self._options.random_seed, shard_index)
        pairs = self._pairs(text, draws)
        order = draws.permutation(len(pairs))
        for done in range(0, len(order), _ROWS_AT_A_TIME):
            columns = features.columns_of_table(
                pairs.take(order[done : done + _ROWS_AT_A_TIME]),
                text,
                self._vocabulary,
                max_seq_length=self._options.max_seq_length,
                next_sentence=self._options.next_sentence,
                masks=self._masks,
                draws=draws,
            )
            if self._options.packed_rows:
                columns = row_packing.packed(columns)
            counts.add_columns(columns)
            yield columns
            on_progress(0.5 + 0.5 * done / len(order))
        on_progress(1.0)

    def _tokenized(self, shard, counts, on_progress):
        text = tokenized_text.tokenize_documents(
            data_corpus.read_shard(shard),
            self._table,
            on_progress=lambda n: on_progress(n / (2 * shard.num_bytes)),
        )
        counts.documents += text.num_documents
        counts.sentences += text.num_sentences
        counts.pieces += len(text.ids)
        counts.unknown += int((text.ids == self._vocabulary.unk_id).sum())
        counts_module.check_documents(
            text.num_documents, self._options.next_sentence, shard.spans[0].path
        )
        return text

    def _pairs(self, text, draws):
        options = self._options
        sample = (
            vectorized_pairs.sample_pairs
            if options.next_sentence
            else vectorized_pairs.sample_sequences
        )
        return sample(
            text,
            draws,
            max_tokens=options.max_tokens,
            short_seq_prob=options.short_seq_prob,
            dupe_factor=options.dupe_factor,
        )
