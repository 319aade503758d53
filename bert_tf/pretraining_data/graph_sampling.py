"""Raw text to pretraining examples as one `tf.data.Dataset`, without record files.

Reading, tokenization, sampling and masking are TensorFlow ops, so the dataset also runs
on tf.data service. All draws are functions of (seed, epoch, shard). Therefore every
epoch has different pairs and masks, and a dataset that begins at a later epoch has the
same examples there as one that reached it.
"""

import itertools
import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import graph_draws
from bert_tf.pretraining_data import graph_pairs
from bert_tf.pretraining_data import graph_rows
from bert_tf.pretraining_data import mask_shares
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

_ROWS_AT_A_TIME = 2048
# Shards whose rows are mixed in the dataset.
_SHARDS_AT_A_TIME = 4
_MAX_INT64 = np.iinfo(np.int64).max


def text_dataset(
    input_file: str | Sequence[str],
    vocab_file: str | os.PathLike[str] | vocabulary_module.Vocabulary,
    *,
    do_lower_case: bool = True,
    max_seq_length: int = 128,
    max_predictions_per_seq: int = 20,
    masked_lm_prob: float = 0.15,
    short_seq_prob: float = 0.1,
    do_whole_word_mask: bool = False,
    next_sentence: bool = True,
    shares: mask_shares.MaskShares | None = None,
    random_seed: int = 12345,
    first_epoch: int = 0,
    num_epochs: int | None = None,
) -> tf.data.Dataset:
    """Returns the release's pretraining examples, made from raw text on the fly.

    The text has one sentence per line and a blank line between documents. Every epoch
    passes over it once, in a different order and with different pairs and masks.

    Args:
        input_file: names and globs of text files in UTF-8.
        vocab_file: path of a vocabulary, or a `Vocabulary`.
        do_lower_case: whether to lowercase.
        max_seq_length: S, the length of each example in word pieces.
        max_predictions_per_seq: M, the maximum number of masked pieces per example.
        masked_lm_prob: share of the word pieces to mask.
        short_seq_prob: probability that a pass over a document makes shorter sequences.
        do_whole_word_mask: whether all pieces of a word are masked together.
        next_sentence: whether to make sentence pairs; otherwise, sequences of
            consecutive sentences without labels.
        shares: what replaces the masked pieces; default: 80 % [MASK], 10 % random.
        random_seed: determines all draws, together with the epoch and the shard.
        first_epoch: the epoch to begin with.
        num_epochs: the number of epochs; None: endless.

    Returns:
        Dataset of dictionaries, one example each: `input_ids`, `input_mask` and
        `segment_ids` int32 [S], `masked_lm_positions` and `masked_lm_ids` int32 [M],
        `masked_lm_weights` float32 [M], `next_sentence_labels` int32 [1].

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no text, or only one document although pairs need two; or
            the vocabulary is invalid. While the dataset is read, text that is not UTF-8
            raises a `tf.errors.InvalidArgumentError`.

    Example:
        dataset = text_dataset("text/*.txt", "vocab.txt").batch(32)
        model.fit(dataset, steps_per_epoch=1000)
    """
    paths = files.expand(input_file)
    shards = data_corpus.balanced_shards(paths)
    if not shards:
        raise ValueError(f"Found no text in {', '.join(paths)}.")
    if len(shards) == 1:  # Several shards have at least two documents each.
        documents = itertools.islice(data_corpus.read_shard(shards[0]), 2)
        counts_module.check_documents(len(list(documents)), next_sentence, paths[0])
    vocabulary = full.load_vocabulary(vocab_file)
    sampler = _TextSampler(
        graph_rows.RowSettings(
            vocabulary=vocabulary,
            max_seq_length=max_seq_length,
            max_predictions=max_predictions_per_seq,
            masked_lm_prob=masked_lm_prob,
            whole_words=do_whole_word_mask,
            next_sentence=next_sentence,
            shares=shares or mask_shares.MaskShares(),
        ),
        do_lower_case=do_lower_case,
        short_seq_prob=short_seq_prob,
    )
    spans = _SpanTable(shards)

    def rows_of_shard(epoch, shard):
        text = sampler.text(spans.lines(shard))
        draws = graph_draws.GraphDraws(random_seed, epoch, shard)
        pairs = sampler.pairs(text, draws, dupe_factor=1)
        blocks = tf.data.Dataset.from_tensor_slices(pairs).batch(_ROWS_AT_A_TIME)
        return blocks.enumerate().map(
            lambda block, chosen: sampler.rows(text, chosen, draws.part(block))
        )

    def shards_of_epoch(epoch):
        order = graph_draws.GraphDraws(random_seed, epoch).permutation(len(shards))
        return tf.data.Dataset.from_tensor_slices(order).map(lambda s: (epoch, s))

    end = _MAX_INT64 if num_epochs is None else first_epoch + num_epochs
    return (
        tf.data.Dataset.range(first_epoch, end)
        .flat_map(shards_of_epoch)
        .interleave(
            rows_of_shard,
            cycle_length=_SHARDS_AT_A_TIME,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        .unbatch()
    )


class GraphSampler:
    """Creates the records of `text_dataset` for create_pretraining_data.

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
        settings = graph_rows.RowSettings(
            vocabulary=vocabulary,
            max_seq_length=options.max_seq_length,
            max_predictions=options.max_predictions_per_seq,
            masked_lm_prob=options.masked_lm_prob,
            whole_words=options.do_whole_word_mask,
            next_sentence=options.next_sentence,
            shares=options.shares,
        )
        self._unk_id = vocabulary.unk_id
        self._sampler = _TextSampler(
            settings,
            do_lower_case=options.do_lower_case,
            short_seq_prob=options.short_seq_prob,
        )
        self._sample = tf.function(
            self._text_and_pairs,
            input_signature=[
                tf.TensorSpec([None], tf.string),
                tf.TensorSpec([], tf.int64),
            ],
        )
        self._rows = tf.function(self._rows_of_block, reduce_retracing=True)

    def columns(
        self,
        shard: data_corpus.Shard,
        shard_index: int,
        counts: counts_module.Counts,
        on_progress: Callable[[float], None],
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yields the shard's records, as `VectorizedSampler.columns` does."""
        lines: list[str] = []
        for document in data_corpus.read_shard(shard):
            lines += [*document, ""]
        if not lines:
            return
        text, pairs = self._sample(tf.constant(lines), shard_index)
        num_documents = len(text.document_starts) - 1
        counts.documents += num_documents
        counts.sentences += len(text.sentence_starts) - 1
        counts.pieces += len(text.ids)
        counts.unknown += int((text.ids.numpy() == self._unk_id).sum())
        counts_module.check_documents(
            num_documents, self._options.next_sentence, shard.spans[0].path
        )
        num_rows = len(pairs.start_a)
        on_progress(0.5)
        for done in range(0, num_rows, _ROWS_AT_A_TIME):
            chosen = slice(done, done + _ROWS_AT_A_TIME)
            block = graph_pairs.Pairs(*(column[chosen] for column in pairs))
            rows = self._rows(text, block, tf.constant(shard_index), tf.constant(done))
            columns = {name: column.numpy() for name, column in rows.items()}
            counts.add_columns(columns)
            yield columns
            on_progress(0.5 + 0.5 * done / num_rows)
        on_progress(1.0)

    def _text_and_pairs(self, lines, shard_index):
        text = self._sampler.text(lines)
        draws = graph_draws.GraphDraws(self._options.random_seed, shard_index)
        dupe_factor = self._options.dupe_factor
        return text, self._sampler.pairs(text, draws, dupe_factor=dupe_factor)

    def _rows_of_block(self, text, pairs, shard_index, first_row):
        seed = self._options.random_seed
        draws = graph_draws.GraphDraws(seed, shard_index, first_row)
        return self._sampler.rows(text, pairs, draws)


class _TextSampler:
    """Lines of text in, rows out."""

    def __init__(self, settings, *, do_lower_case, short_seq_prob):
        self._settings = settings
        self._tokenizer = in_graph.InGraphTokenizer(settings.vocabulary, do_lower_case)
        self._row_maker = graph_rows.RowMaker(settings)
        self._short_seq_prob = short_seq_prob

    def text(self, lines):
        """Returns the `graph_pairs.Text` of lines, tf.string [lines]."""
        return graph_pairs.text_of_lines(lines, self._tokenizer.tokenize(lines))

    def pairs(self, text, draws, dupe_factor):
        """Returns the pairs of `dupe_factor` passes over a text, in random order."""
        settings = self._settings
        is_pairs = settings.next_sentence
        sample = graph_pairs.sample_pairs if is_pairs else graph_pairs.sample_sequences
        pairs = sample(
            text,
            draws,
            max_tokens=settings.max_seq_length - (3 if is_pairs else 2),
            short_seq_prob=self._short_seq_prob,
            dupe_factor=dupe_factor,
        )
        order = draws.permutation(tf.size(pairs.start_a))
        return graph_pairs.Pairs(*(tf.gather(column, order) for column in pairs))

    def rows(self, text, pairs, draws):
        """Returns the columns of pairs."""
        return self._row_maker.rows(text.ids, pairs, draws)


class _SpanTable:
    """Reads the lines of a shard with TensorFlow ops."""

    def __init__(self, shards):
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

    def lines(self, shard):
        """Returns the lines of a shard, tf.string [lines].

        The end of a file does not end a document.
        """
        index = tf.data.Dataset.range(self._first[shard], self._first[shard + 1])
        parts = index.flat_map(self._part).batch(_MAX_INT64).get_single_element()
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
