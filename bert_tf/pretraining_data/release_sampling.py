"""The release's sampler: text to records, with the draws of 2018 in their order.

One generator serves all draws, in the order documents, pairs, masks, instances. The
same text, flags and seed therefore give the same records as the 2018 script. The order
of the draws is part of the result; do not change it.
"""

import dataclasses
import random
from collections.abc import Callable
from collections.abc import Iterator

import numpy as np

from bert_tf.data import corpus as data_corpus
from bert_tf.data import packing
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_masks
from bert_tf.pretraining_data import release_pairs
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

_ROWS_AT_A_TIME = 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedPair:
    """A packed and masked sentence pair."""

    masked: release_masks.MaskedTokens
    num_first: int  # Length of segment 0: [CLS], A and the first [SEP].
    is_random_next: bool  # True: B comes from another document.


class ReleaseSampler:
    """Creates the records that the 2018 script created.

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
        self._tokenizer = full.FullTokenizer(vocabulary, options.do_lower_case)

    def columns(
        self,
        shard: data_corpus.Shard,
        shard_index: int,
        counts: counts_module.Counts,
        on_progress: Callable[[float], None],
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yields the shard's records, as `VectorizedSampler.columns` does."""
        options = self._options
        documents = self._documents(shard, counts, on_progress)
        counts_module.check_documents(
            len(documents), options.next_sentence, shard.spans[0].path
        )
        # The first shard has the release's seed: a corpus of one shard is its corpus.
        rng = random.Random(options.random_seed + shard_index)
        rng.shuffle(documents)
        pairs = self._pairs(documents, rng, on_progress)
        rng.shuffle(pairs)
        for done in range(0, len(pairs), _ROWS_AT_A_TIME):
            columns = self._columns(pairs[done : done + _ROWS_AT_A_TIME])
            counts.add_columns(columns)
            yield columns
        on_progress(1.0)

    def _documents(self, shard, counts, on_progress):
        """Returns lists of sentences, which are lists of word pieces."""
        documents, num_characters = [], 0
        for sentences in data_corpus.read_shard(shard):
            document = [self._tokenizer.tokenize(sentence) for sentence in sentences]
            document = [tokens for tokens in document if tokens]
            if document:
                documents.append(document)
                counts.documents += 1
                counts.sentences += len(document)
                counts.pieces += sum(map(len, document))
                counts.unknown += sum(s.count(vocabulary_module.UNK) for s in document)
            num_characters += sum(map(len, sentences))
            on_progress(num_characters / (2 * shard.num_bytes))
        return documents

    def _pairs(self, documents, rng, on_progress):
        options = self._options
        sampler = release_pairs.PairSampler(
            documents,
            rng,
            max_tokens=options.max_seq_length - 3,  # [CLS] and two [SEP].
            short_seq_prob=options.short_seq_prob,
        )
        result = []
        # The masks are fixed once the records are written, so training would see the
        # same masks in each of its epochs (about 40 in the paper). With dupe_factor
        # passes over the text it sees as many different pairs and masks of each text.
        for dupe in range(options.dupe_factor):
            for index in range(len(documents)):
                # A pair's masks are drawn before the next pair.
                result += [self._masked(pair, rng) for pair in sampler.pairs(index)]
            on_progress(0.5 + 0.4 * (dupe + 1) / options.dupe_factor)
        return result

    def _masked(self, pair, rng):
        options = self._options
        packed = packing.pack_pair(
            pair.tokens_a, pair.tokens_b, max_seq_length=options.max_seq_length
        )
        masked = release_masks.mask_tokens(
            packed.pieces,
            rng,
            vocabulary=self._vocabulary,
            masked_lm_prob=options.masked_lm_prob,
            max_predictions=options.max_predictions_per_seq,
            whole_words=options.do_whole_word_mask,
            shares=options.shares,
        )
        return MaskedPair(
            masked=masked,
            num_first=len(pair.tokens_a) + 2,
            is_random_next=pair.is_random_next,
        )

    def _columns(self, pairs):
        """Returns pairs as columns [B, length] of `schema.pretraining`.

        Source: write_instance_to_example_files of create_pretraining_data.py, 2018.
        """
        ids = self._vocabulary.ids
        rows = [
            packing.PackedPair(
                pieces=[ids[token] for token in pair.masked.tokens],
                segment_ids=[
                    int(place >= pair.num_first)
                    for place in range(len(pair.masked.tokens))
                ],
            )
            for pair in pairs
        ]
        columns = packing.padded_features(rows, self._options.max_seq_length)
        shape = (len(pairs), self._options.max_predictions_per_seq)
        columns["masked_lm_positions"] = np.zeros(shape, np.int32)
        columns["masked_lm_ids"] = np.zeros(shape, np.int32)
        columns["masked_lm_weights"] = np.zeros(shape, np.float32)
        for row, pair in enumerate(pairs):
            num_chosen = len(pair.masked.positions)
            labels = [ids[token] for token in pair.masked.labels]
            columns["masked_lm_positions"][row, :num_chosen] = pair.masked.positions
            columns["masked_lm_ids"][row, :num_chosen] = labels
            columns["masked_lm_weights"][row, :num_chosen] = 1.0
        columns["next_sentence_labels"] = np.array(
            [[int(pair.is_random_next)] for pair in pairs], np.int32
        ).reshape(-1, 1)
        return columns
