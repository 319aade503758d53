"""The release's sampler: text to records, with the draws of 2018 in their order.

One generator serves all draws, in the order documents, pairs, masks, instances. The
same text, flags and seed therefore give the same records as the 2018 script. The order
of the draws is part of the result; do not change it.
"""

import dataclasses
import random
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf.data import corpus as data_corpus
from bert_tf.data import schema as schema_module
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

_ROWS_AT_A_TIME = 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencePair:
    """Two segments and whether the second really follows the first."""

    tokens_a: list[str]
    tokens_b: list[str]
    is_random_next: bool  # True: B comes from another document.


class PairSampler:
    """Draws the sentence pairs of documents, one by one.

    Half of the pairs have a B that follows A in the text (label 0, "is next"), half a B
    from another document (label 1). The model predicts the label from [CLS]. This task
    is meant to teach relations between sentences, which predicting masked words does
    not, and which question answering and inference need (section 3.1 of
    arXiv:1810.04805).

    Removing it costs 0.5 points on MNLI, 3.5 on QNLI and 0.6 F1 on SQuAD in the paper
    (Table 5). Later work (RoBERTa and ALBERT, 2019) found that models trained on
    continuous text of full length do as well or better without it: a random B is easy
    to recognize by its topic, and pairs halve the context. `--next_sentence=false`
    creates such sequences.

    Args:
        documents: lists of sentences, which are lists of word pieces; none empty.
        rng: source of all draws, in the release's order.
        max_tokens: maximum number of pieces of A and B together.
        short_seq_prob: probability that a pass over a document makes shorter pairs.

    Source: create_instances_from_document of create_pretraining_data.py, 2018.
    """

    def __init__(
        self,
        documents: Sequence[Sequence[Sequence[str]]],
        rng: random.Random,
        *,
        max_tokens: int,
        short_seq_prob: float,
    ):
        self._documents = documents
        self._rng = rng
        self._max_tokens = max_tokens
        self._short_seq_prob = short_seq_prob

    def pairs(self, document_index: int) -> Iterator[SentencePair]:
        """Yields the pairs of one pass over a document.

        Between two pairs the caller may draw from the same `rng`: the release draws a
        pair's masks before the next pair.
        """
        document = self._documents[document_index]
        # Fine-tuning and later use see sequences of all lengths. If all pretraining
        # sequences had full length, short inputs would be unfamiliar, so a tenth of
        # the passes aims at a random shorter length. It is only a tenth because
        # attention over padding is wasted computation. Source:
        # create_pretraining_data.py, 2018.
        target = self._max_tokens
        if self._rng.random() < self._short_seq_prob:
            target = self._rng.randint(2, self._max_tokens)
        start = 0
        while start < len(document):
            chunk = _chunk(document, start, target)
            pair, num_used = self._pair(chunk, document_index, target)
            start += num_used
            yield pair

    def _pair(self, chunk, document_index, target):
        """Returns a pair, and how many sentences of the chunk it uses."""
        a_end = self._rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        tokens_a = _joined(chunk[:a_end])
        # Each case has probability one half, so that guessing gains nothing (section
        # 3.1). A chunk of one sentence has no rest that could be B, so its B is always
        # random; this makes the share of random pairs a little larger than a half.
        is_random_next = len(chunk) == 1 or self._rng.random() < 0.5
        if is_random_next:
            tokens_b = self._random_tokens(document_index, target - len(tokens_a))
        else:
            tokens_b = _joined(chunk[a_end:])
        self._truncate(tokens_a, tokens_b)
        pair = SentencePair(
            tokens_a=tokens_a, tokens_b=tokens_b, is_random_next=is_random_next
        )
        # A random B leaves the chunk's sentences after A unused. The next chunk starts
        # with them; otherwise about a quarter of the text would be lost.
        return pair, a_end if is_random_next else len(chunk)

    def _random_tokens(self, document_index, num_wanted):
        """Returns sentences from a random position in another document.

        The release tries ten times to find another document, and then takes the last
        one drawn even if it is A's own. With a single document it is always A's own,
        so B may really follow A although its label says that it does not.
        `counts.check_documents` refuses such a corpus.
        """
        for _ in range(10):
            other = self._rng.randint(0, len(self._documents) - 1)
            if other != document_index:
                break
        document = self._documents[other]
        start = self._rng.randint(0, len(document) - 1)
        return _joined(_chunk(document, start, num_wanted))

    def _truncate(self, tokens_a, tokens_b):
        """Removes pieces from the longer list until both fit together.

        The longer list gives way, B if both are equally long, so that neither is lost.
        Pieces go from the front or the back at random. Cutting only at the back would
        make every segment begin with a whole sentence and long ones end in the middle
        of one, a pattern that the model would learn.
        """
        while len(tokens_a) + len(tokens_b) > self._max_tokens:
            longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
            if self._rng.random() < 0.5:
                del longer[0]
            else:
                longer.pop()


def _chunk(document, start, target):
    """Returns sentences from `start` on until they have `target` pieces."""
    for end in range(start + 1, len(document) + 1):
        target -= len(document[end - 1])
        if target <= 0:
            break
    return document[start:end]


def _joined(sentences):
    return [token for sentence in sentences for token in sentence]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instance:
    """A packed and masked sentence pair."""

    ids: np.ndarray  # int32, of all pieces after masking.
    num_first: int  # Length of segment 0: [CLS], A and the first [SEP].
    positions: list[int]  # Masked positions, ascending.
    labels: list[int]  # Original ids at these positions.
    is_random_next: bool  # True: B comes from another document.


class ReleaseSampler:
    """Creates the records that the 2018 script created."""

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
        instances = self._instances(documents, rng, on_progress)
        rng.shuffle(instances)
        for done in range(0, len(instances), _ROWS_AT_A_TIME):
            yield self._columns(instances[done : done + _ROWS_AT_A_TIME])

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

    def _instances(self, documents, rng, on_progress):
        options = self._options
        sampler = PairSampler(
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
        ids_of = self._tokenizer.convert_tokens_to_ids
        tokens = ["[CLS]", *pair.tokens_a, "[SEP]", *pair.tokens_b, "[SEP]"]
        masked, positions = mask(tokens, rng, self._vocabulary, self._options)
        return Instance(
            ids=np.array(ids_of(masked), np.int32),
            num_first=len(pair.tokens_a) + 2,
            positions=positions,
            labels=ids_of(tokens[position] for position in positions),
            is_random_next=pair.is_random_next,
        )

    def _columns(self, instances):
        """Returns instances as columns [B, length] of `schema.pretraining`.

        Source: write_instance_to_example_files of create_pretraining_data.py, 2018.
        """
        options = self._options
        schema = schema_module.pretraining(
            options.max_seq_length, options.max_predictions_per_seq
        )
        columns = {
            column.name: np.zeros((len(instances), *column.shape), column.dtype)
            for column in schema.columns
        }
        for row, one in enumerate(instances):
            length, num_chosen = len(one.ids), len(one.positions)
            columns["input_ids"][row, :length] = one.ids
            columns["input_mask"][row, :length] = 1
            columns["segment_ids"][row, one.num_first : length] = 1
            columns["masked_lm_positions"][row, :num_chosen] = one.positions
            columns["masked_lm_ids"][row, :num_chosen] = one.labels
            columns["masked_lm_weights"][row, :num_chosen] = 1.0
            columns["next_sentence_labels"][row] = one.is_random_next
        return columns


def mask(
    tokens: Sequence[str],
    rng: random.Random,
    vocabulary: vocabulary_module.Vocabulary,
    options: Any,
) -> tuple[list[str], list[int]]:
    """Returns a sequence with masks, and its chosen positions in ascending order.

    A model that attends to both sides can only be trained to predict words that it does
    not see. BERT hides 15 % of the pieces in each sequence and predicts those (section
    3.1 of arXiv:1810.04805). The share is a compromise: with fewer, each sequence
    teaches less, because only predicted positions have a loss; with more, there is less
    context to predict from. It is also why BERT converges more slowly than a
    left-to-right model, which predicts every piece (appendix C.1).

    Args:
        tokens: [CLS] A [SEP] B [SEP].
        rng: source of all draws, in the release's order.
        vocabulary: vocabulary that random pieces are drawn from.
        options: how to mask, of create_pretraining_data.

    Source: create_masked_lm_predictions of create_pretraining_data.py, 2018.
    """
    candidates = _candidates(tokens, options.do_whole_word_mask)
    rng.shuffle(candidates)
    wanted = pretraining_data_options.num_wanted(len(tokens), options.masked_lm_prob)
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
