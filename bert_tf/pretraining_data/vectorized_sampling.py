"""The default sampler: text to records, thousands of sequences at once.

It draws from the distributions of the release, but vectorized in NumPy: tokenize the
shard (`tokenized_text`), draw all pairs (`pairs`), shuffle them, and then lay out and
mask (`rows`) and optionally pack (`row_packing`) a block of rows at a time.
`release_sampling` is the readable counterpart.

Shape letters: B batch.
"""

from collections.abc import Callable
from collections.abc import Iterator

import numpy as np

from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import numpy_arrays
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import row_packing
from bert_tf.pretraining_data import rows as rows_module
from bert_tf.pretraining_data import tokenized_text
from bert_tf.tokenization import vocabulary as vocabulary_module

# Large enough to keep NumPy's overhead small, small enough for the processor's cache.
_ROWS_AT_A_TIME = 2048


class VectorizedSampler:
    """Creates records with the distributions of the 2018 script."""

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
        self._pairs = pairs_module.Sampler(numpy_arrays, options)
        self._rows = rows_module.RowMaker(numpy_arrays, vocabulary, options)

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
            counts: the counts of the shard's text are added to it.
            on_progress: called with the share of the shard that is finished.

        Yields:
            Columns [B, length] of `schema.pretraining`.

        Raises:
            OSError: the text cannot be read.
            ValueError: the text is not UTF-8, or has one document although sentence
                pairs need two.
        """
        text = self._text(shard, on_progress)
        path = shard.spans[0].path
        counts.add_text(text, self._vocabulary.unk_id, self._options, path)
        if not len(text.ids):
            return
        pairs, rows_of = self._sample(text, shard_index)
        num_rows = len(pairs.start_a)
        for done in range(0, num_rows, _ROWS_AT_A_TIME):
            rows = slice(done, done + _ROWS_AT_A_TIME)
            yield rows_of(pairs_module.Pairs(*(column[rows] for column in pairs)), done)
            on_progress(0.5 + 0.5 * done / num_rows)

    def _text(self, shard, on_progress):
        return tokenized_text.tokenize_documents(
            data_corpus.read_shard(shard),
            self._table,
            on_progress=lambda n: on_progress(n / (2 * shard.num_bytes)),
        )

    def _sample(self, text, shard_index):
        """Returns the pairs, and a function from a block of them to its columns."""
        draws = numpy_arrays.Draws(self._options.random_seed, shard_index)

        def rows_of(block, first_row):
            columns = self._rows.rows(text, block, draws)
            return row_packing.packed(columns) if self._options.packed_rows else columns

        return self._pairs.sample(text, draws, self._options.dupe_factor), rows_of
