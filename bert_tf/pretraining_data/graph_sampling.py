"""Raw text to pretraining examples as one `tf.data.Dataset`, without record files.

Reading, tokenization, sampling and masking are TensorFlow ops, so the dataset also runs
on tf.data service. `graph_pools` says what determines the draws.
"""

import os
from collections.abc import Sequence

import tensorflow as tf

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.pretraining_data import graph_arrays
from bert_tf.pretraining_data import graph_pools
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import pairs as pairs_module
from bert_tf.pretraining_data import vectorized_sampling
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module


@tf.autograph.experimental.do_not_convert  # Converting takes time and is not needed.
def text_dataset(
    input_file: str | Sequence[str],
    vocab_file: str | os.PathLike[str] | vocabulary_module.Vocabulary,
    *,
    do_lower_case: bool | None = None,
    max_seq_length: int = 128,
    max_predictions_per_seq: int = 20,
    masked_lm_prob: float = 0.15,
    short_seq_prob: float = 0.1,
    do_whole_word_mask: bool = False,
    masking: str = "random",
    next_sentence: bool = True,
    shares: pretraining_data_options.MaskShares | None = None,
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
        do_lower_case: whether to lowercase. None: True; a vocabulary with cased pieces
            needs a value.
        max_seq_length: S, the length of each example in word pieces.
        max_predictions_per_seq: M, the maximum number of masked pieces per example.
        masked_lm_prob: share of the word pieces to mask.
        short_seq_prob: probability that a pass over a document makes shorter sequences.
        do_whole_word_mask: whether all pieces of a word are masked together.
        masking: "random": choose pieces or words independently. "span": choose up to
            ten consecutive words together, as SpanBERT does.
        next_sentence: whether to make sentence pairs; otherwise, sequences of
            consecutive sentences without labels.
        shares: what replaces the masked pieces; default: 80 % [MASK], 10 % random.
        random_seed: determines all draws.
        first_epoch: the epoch to begin with.
        num_epochs: the number of epochs; None: endless.

    Returns:
        Dataset of dictionaries, one example each: `input_ids`, `input_mask` and
        `segment_ids` int32 [S], `masked_lm_positions` and `masked_lm_ids` int32 [M],
        `masked_lm_weights` float32 [M], and unless `next_sentence` is False,
        `next_sentence_labels` int32 [1].

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no text, or only one document although pairs need two; the
            vocabulary is invalid; or an argument is out of range.
        tf.errors.InvalidArgumentError: while the dataset is read: text is not UTF-8.

    Example:
        dataset = text_dataset("text/*.txt", "vocab.txt").batch(32)
        model.fit(dataset, steps_per_epoch=1000)
    """
    if not first_epoch >= 0:
        raise ValueError(f"first_epoch: expected at least 0, got {first_epoch}.")
    if num_epochs is not None and not num_epochs >= 1:
        raise ValueError(f"num_epochs: expected at least 1, got {num_epochs}.")
    shares = shares or pretraining_data_options.MaskShares()
    options = pretraining_data_options.of_arguments(
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions_per_seq,
        masked_lm_prob=masked_lm_prob,
        short_seq_prob=short_seq_prob,
        do_whole_word_mask=do_whole_word_mask,
        masking=masking,
        next_sentence=next_sentence,
        random_seed=random_seed,
        mask_share=shares.mask,
        same_share=shares.same,
        random_share=shares.random,
    )
    vocabulary = full.load_vocabulary(vocab_file)
    cased = full.cased_piece(vocabulary)
    if do_lower_case is None and cased is not None:
        raise ValueError(
            f"The vocabulary has cased pieces such as {cased!r}; pass "
            "do_lower_case=False, or True if the model is to learn lowercased text."
        )
    pools = graph_pools.TextPools(
        files.expand(input_file),
        options,
        vocabulary,
        do_lower_case=do_lower_case is not False,
    )
    first = first_epoch * pools.num_pools
    end = tf.int64.max if num_epochs is None else first + num_epochs * pools.num_pools
    return pools.pools(first, end).flat_map(lambda pool: pools.blocks(pool).unbatch())


class GraphSampler(vectorized_sampling.VectorizedSampler):
    """Creates the records of `text_dataset`."""

    def __init__(
        self,
        options: pretraining_data_options.CreatePretrainingDataOptions,
        vocabulary: vocabulary_module.Vocabulary,
    ):
        self._options = options
        self._vocabulary = vocabulary
        self._sampler = graph_pools.TextSampler(
            options, vocabulary, do_lower_case=options.do_lower_case
        )
        # The first two are traced once, whatever the lengths of the shards.
        starts = tf.TensorSpec([None], tf.int64)
        self._text_in_graph = tf.function(
            self._sampler.text,
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )
        self._pairs_in_graph = tf.function(
            self._pairs_of_shard,
            input_signature=[
                tf.TensorSpec([None], tf.int32),
                *(starts, starts),  # Of sentences and documents.
                tf.TensorSpec([], tf.int64),
            ],
            autograph=False,
        )
        self._rows_in_graph = tf.function(
            self._rows_of_block, reduce_retracing=True, autograph=False
        )

    def _text(self, shard, on_progress):
        documents = data_corpus.read_shard(shard)
        lines = [line for document in documents for line in (*document, "")]
        text = self._text_in_graph(tf.constant(lines, tf.string))
        return pairs_module.Text(*(a.numpy() for a in text[:3]))

    def _sample(self, text, shard_index):
        text = pairs_module.Text(*map(tf.constant, text[:3]))
        number = tf.constant(shard_index, tf.int64)

        def rows_of(block, first_row):
            first_row = tf.constant(first_row, tf.int64)
            rows = self._rows_in_graph(text.ids, block, number, first_row)
            return {name: column.numpy() for name, column in rows.items()}

        return self._pairs_in_graph(*text[:3], number), rows_of

    def _pairs_of_shard(self, ids, sentence_starts, document_starts, shard_index):
        text = pairs_module.Text(ids, sentence_starts, document_starts)
        draws = graph_arrays.GraphDraws(self._options.random_seed, shard_index)
        return self._sampler.pairs(text, draws, self._options.dupe_factor)

    def _rows_of_block(self, ids, pairs, shard_index, first_row):
        rows = first_row + tf.range(tf.size(pairs.start_a, tf.int64))
        seed = self._options.random_seed
        keys = graph_arrays.row_keys(seed, shard_index, rows=rows)
        return self._sampler.rows(ids, pairs, keys)
