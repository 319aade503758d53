"""Sentence pairs, drawn one by one as in the release.

Half of the pairs have a B that follows A in the text (label 0, "is next"), half a B
from another document (label 1). The model predicts the label from [CLS]. This task is
meant to teach relations between sentences, which predicting masked words does not, and
which question answering and inference need (section 3.1 of arXiv:1810.04805).

Removing it costs 0.5 points on MNLI, 3.5 on QNLI and 0.6 F1 on SQuAD in the paper
(Table 5). Later work (RoBERTa and ALBERT, 2019) found that models trained on continuous
text of full length do as well or better without it: a random B is easy to recognize by
its topic, and pairs halve the context. `--next_sentence=false` creates such sequences.
"""

import dataclasses
import random
from collections.abc import Iterator
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentencePair:
    """Two segments and whether the second really follows the first."""

    tokens_a: tuple[str, ...]
    tokens_b: tuple[str, ...]
    is_random_next: bool  # True: B comes from another document.


class PairSampler:
    """Draws the sentence pairs of documents.

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
            tokens_a=tuple(tokens_a),
            tokens_b=tuple(tokens_b),
            is_random_next=is_random_next,
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
        tokens: list[str] = []
        for sentence in document[start:]:
            tokens += sentence
            if len(tokens) >= num_wanted:
                break
        return tokens

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
    num_tokens = 0
    for end in range(start, len(document)):
        num_tokens += len(document[end])
        if num_tokens >= target:
            return document[start : end + 1]
    return document[start:]


def _joined(sentences):
    return [token for sentence in sentences for token in sentence]
