"""The examples of a text, epoch after epoch, as TensorFlow ops.

An epoch permutes the shards of the text and takes them in pools of a few. The examples
of a pool are shuffled together. All draws are functions of the seed, the number of the
pool and the number of the example in it: the pairs, their order and the masks. So every
epoch has different examples, a dataset can begin with any pool, and any subset of a
pool's rows can be created without the others.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import graph_arrays
from bert_tf.pretraining_data import numpy_arrays
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import rows as rows_module
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

ROWS_AT_A_TIME = 2048
# With at most 8 MB each, so that memory does not grow with the text.
SHARDS_PER_POOL = 4
_SHARDS_AT_A_TIME = 2
_BLOCKS_AT_A_TIME = 2
# What str.strip() removes.
_WHITE_SPACE = (
    r"[\t\n\v\f\r\x1c-\x1f \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}]*"
)


class Pool(NamedTuple):
    """Pairs of a few shards in random order."""

    number: tf.Tensor  # int64, from the first pool of epoch 0 on.
    ids: tf.Tensor  # int32 [P], the pieces that the pairs point into.
    pairs: pairs_module.Pairs


class TextSampler:
    """Makes pairs, or single sequences, and rows of lines.

    The options are those of create_pretraining_data or run_pretraining.
    """

    def __init__(
        self,
        options: Any,
        vocabulary: vocabulary_module.Vocabulary,
        *,
        do_lower_case: bool,
    ):
        in_graph.check_ops()
        self._tokenizer = in_graph.InGraphTokenizer(vocabulary, do_lower_case)
        self._next_sentence = options.next_sentence
        self._pairs = pairs_module.Sampler(graph_arrays, options)
        self._rows = rows_module.RowMaker(graph_arrays, vocabulary, options)

    def text(self, lines: tf.Tensor) -> pairs_module.Text:
        """Returns the text of lines, tf.string [lines]; blank ones end documents."""
        ids = self._tokenizer.tokenize(lines)
        is_blank = tf.strings.regex_full_match(lines, _WHITE_SPACE)
        lengths = ids.row_lengths()
        has_pieces = lengths > 0
        document = tf.cumsum(tf.cast(is_blank, tf.int64))[has_pieces]
        lengths = lengths[has_pieces]
        # Sentences that begin a document. Subtracting 1 makes the first sentence one.
        previous = tf.concat([document[:1] - 1, document[:-1]], axis=0)
        starts = tf.where(document != previous)[:, 0]
        return pairs_module.Text(
            ids=ids.flat_values,
            sentence_starts=tf.concat([[0], tf.cumsum(lengths)], axis=0),
            document_starts=tf.concat([starts, [tf.size(lengths, tf.int64)]], axis=0),
        )

    def pairs(
        self,
        text: pairs_module.Text,
        draws: graph_arrays.GraphDraws,
        dupe_factor: int = 1,
    ) -> pairs_module.Pairs:
        """Returns the pairs of `dupe_factor` passes over a text, in random order."""
        if self._next_sentence:
            tf.debugging.assert_greater(
                tf.size(text.document_starts), 2, "Pairs need documents with pieces."
            )
        return self._pairs.sample(text, draws, dupe_factor)

    def rows(
        self, ids: tf.Tensor, pairs: pairs_module.Pairs, keys: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Returns pairs of a text with these pieces as columns [B, length].

        Args:
            ids: int32 [P], the pieces that the pairs point into.
            pairs: B pairs, or B sequences without a second segment.
            keys: uint64 [B], from `graph_arrays.row_keys`.
        """
        text = pairs_module.Text(ids=ids, sentence_starts=None, document_starts=None)
        draws = numpy_arrays.RowDraws(graph_arrays, keys)
        return self._rows.rows(text, pairs, draws)


class TextPools:
    """The pools of a text.

    Args:
        paths: text files in UTF-8, with one sentence per line and a blank line between
            documents.
        options: how text becomes examples, of create_pretraining_data or
            run_pretraining.
        vocabulary: the word pieces.
        do_lower_case: whether to lowercase the text.

    Attributes:
        num_pools: number of pools per epoch.
        seed: seed of all draws.
        unchanged: `Unchanged`, the files as they were when the text was cut.

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no text, or only one document although pairs need two.
    """

    def __init__(
        self,
        paths: Sequence[str],
        options: Any,
        vocabulary: vocabulary_module.Vocabulary,
        *,
        do_lower_case: bool,
    ):
        self.unchanged = files.Unchanged(paths)
        shards = data_corpus.balanced_shards(paths)
        if not shards:
            raise ValueError(f"Found no text in {', '.join(paths)}.")
        if len(shards) == 1:  # Several shards have at least two documents each.
            documents = itertools.islice(data_corpus.read_shard(shards[0]), 2)
            counts_module.check_documents(
                len(list(documents)), options.next_sentence, paths[0]
            )
        self.num_pools = -(-len(shards) // SHARDS_PER_POOL)
        self._num_shards = len(shards)
        self.seed = options.random_seed
        self._create_sampler = functools.partial(
            TextSampler, options, vocabulary, do_lower_case=do_lower_case
        )
        self._shards = shards

    # Ops are created at first use: a strategy has to be created before any op.

    @functools.cached_property
    def _sampler(self):
        with tf.init_scope():
            return self._create_sampler()

    @functools.cached_property
    def _spans(self):
        return SpanTable(self._shards)

    @functools.cached_property
    def _count(self):
        return tf.function(
            self._num_rows,
            input_signature=[tf.TensorSpec([], tf.int64)],
            autograph=False,
        )

    @tf.autograph.experimental.do_not_convert  # Converting takes time and is useless.
    def pools(self, first: int, end: int) -> tf.data.Dataset:
        """Returns the pools from number `first` to `end` - 1, a dataset of `Pool`."""
        pools = tf.data.Dataset.range(first, end).flat_map(self._pool)
        return pools.prefetch(1)

    def blocks(self, pool: Pool, chosen: tf.Tensor | None = None) -> tf.data.Dataset:
        """Returns the rows of a pool, or those chosen, as columns of up to 2048."""
        if chosen is None:
            chosen = tf.range(tf.size(pool.pairs.start_a, tf.int64))

        def block(start):
            numbers = chosen[start : start + ROWS_AT_A_TIME]
            pairs = pairs_module.Pairs(*(tf.gather(c, numbers) for c in pool.pairs))
            keys = graph_arrays.row_keys(self.seed, pool.number, rows=numbers)
            return self._sampler.rows(pool.ids, pairs, keys)

        starts = tf.data.Dataset.range(0, tf.size(chosen, tf.int64), ROWS_AT_A_TIME)
        return starts.map(
            block, num_parallel_calls=_BLOCKS_AT_A_TIME, deterministic=True
        )

    def count(self, number: int) -> int:
        """Returns the number of rows of a pool, without creating them."""
        return int(self._count(number))

    def _pool(self, number):
        """Returns a dataset with one `Pool`."""

        def merged(ids, pairs):
            shift = tf.repeat(ids.row_starts(), pairs.start_a.row_lengths())
            pairs = pairs_module.Pairs(*(column.flat_values for column in pairs))
            pairs = pairs._replace(
                start_a=pairs.start_a + shift, start_b=pairs.start_b + shift
            )
            draws = graph_arrays.GraphDraws(self.seed, number, self._num_shards)
            return Pool(
                number,
                ids.flat_values,
                pairs_module.shuffled(graph_arrays, pairs, draws),
            )

        return self._sampled(number).ragged_batch(SHARDS_PER_POOL).map(merged)

    def _sampled(self, number):
        """Returns a dataset of (ids, pairs), one element for each shard of a pool."""
        epoch, pool = number // self.num_pools, number % self.num_pools
        order = graph_arrays.GraphDraws(self.seed, epoch).permutation(self._num_shards)
        first, end = (
            self._num_shards * number // self.num_pools for number in (pool, pool + 1)
        )

        def sampled(shard, lines):
            text = self._sampler.text(lines)
            draws = graph_arrays.GraphDraws(self.seed, epoch, shard)
            pairs = self._sampler.pairs(text, draws)
            tf.debugging.assert_positive(
                tf.size(pairs.start_a), "A part of the text has no word pieces."
            )
            return text.ids, pairs

        # The text is read outside the function that runs in parallel. Otherwise,
        # deterministic operations would make TensorFlow run the pipeline serially.
        return self._spans.lines(order[first:end]).map(
            sampled, num_parallel_calls=_SHARDS_AT_A_TIME, deterministic=True
        )

    def _num_rows(self, number):
        return self._sampled(number).reduce(
            tf.constant(0, tf.int64),
            lambda total, shard: total + tf.size(shard[1].start_a, tf.int64),
        )


class SpanTable:
    """Reads the lines of shards with TensorFlow ops."""

    def __init__(self, shards: Sequence[data_corpus.Shard]):
        spans = [span for shard in shards for span in shard.spans]
        counts = [len(shard.spans) for shard in shards]
        sizes = {path: files.size(path) for path in {s.path for s in spans}}
        with tf.init_scope():
            self._first = tf.constant(np.cumsum([0, *counts]), tf.int64)
            self._path = tf.constant([span.path for span in spans])
            self._start = tf.constant([span.start for span in spans], tf.int64)
            self._end = tf.constant([span.end for span in spans], tf.int64)
            self._size = tf.constant([sizes[span.path] for span in spans], tf.int64)
            self._opens = tf.constant([span.starts_document for span in spans])

    def lines(self, shards: tf.Tensor) -> tf.data.Dataset:
        """Returns a dataset of (index, tf.string [lines]), one element for each shard.

        The end of a file does not end a document.
        """

        def parts(shard):
            index = tf.data.Dataset.range(self._first[shard], self._first[shard + 1])
            parts = index.flat_map(self._part).batch(tf.int64.max)
            return parts.map(lambda parts: (shard, self._lines(shard, parts)))

        return tf.data.Dataset.from_tensor_slices(shards).flat_map(parts)

    def _lines(self, shard, parts):
        """Returns the lines of a shard's spans."""
        text = tf.strings.reduce_join(parts, separator="\n")
        is_utf8 = text == tf.strings.unicode_transcode(
            text, "UTF-8", "UTF-8", errors="ignore"
        )
        path = tf.gather(self._path, self._first[shard])
        tf.debugging.Assert(is_utf8, ["Not UTF-8; convert the file to UTF-8:", path])
        return tf.strings.split(text, "\n")

    def _part(self, index):
        """Returns a dataset with the text of one span, without its last line end."""
        start, end = self._start[index], self._end[index]
        record = tf.data.FixedLengthRecordDataset(
            self._path[index],
            record_bytes=end - start,
            header_bytes=start,
            footer_bytes=self._size[index] - end,
        )
        blank = tf.where(self._opens[index], "\n", "")
        return record.map(lambda text: blank + _without_last_line_end(text))


def _without_last_line_end(text):
    ends = tf.strings.substr(text, -1, 1) == "\n"
    return tf.strings.substr(text, 0, tf.strings.length(text) - tf.cast(ends, tf.int32))
