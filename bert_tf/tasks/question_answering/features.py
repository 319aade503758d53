"""Tokenizes examples and divides long contexts into overlapping windows.

A row is [CLS] question [SEP] pieces of the context [SEP], with segment 1 from the
context on (arXiv:1810.04805, section 4.2). BERT has 512 position embeddings, and many
contexts are longer. So a context becomes several windows, each starting `doc_stride`
pieces after the previous one. A stride shorter than a window makes them overlap: an
answer that one window cuts off is complete in another, and most pieces have text on
both sides in at least one window.

Each context is tokenized and stored once, regardless of its number of questions and
windows. Rows are assembled on demand.

Shape letters: W windows, B rows, S sequence, K pieces of a window.
"""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.data import packing
from bert_tf.data import text_checks
from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

EXAMPLES_PER_CALL = 512  # Examples between two progress reports.
FIRST_UNIQUE_ID = 1_000_000_000  # As in run_squad.py of 2018.
NUM_SPECIAL = question_answering_options.NUM_SPECIAL


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowSizes:
    """The lengths that determine how contexts are divided into windows."""

    max_seq_length: int  # Maximum number of pieces in a row, S.
    doc_stride: int  # Pieces of the context between the starts of two windows.
    max_query_length: int  # Maximum number of pieces of a question; it is truncated.

    @property
    def row_room(self) -> int:
        """The pieces of question and context that a row has room for."""
        return self.max_seq_length - NUM_SPECIAL

    def __post_init__(self):
        if self.max_seq_length - self.max_query_length <= NUM_SPECIAL:
            raise ValueError(
                f"max_seq_length={self.max_seq_length} is too short for a question of "
                f"{self.max_query_length} pieces (max_query_length), {NUM_SPECIAL} "
                "special pieces and at least one piece of the context; increase it, or "
                "decrease max_query_length."
            )
        if self.doc_stride < 1:
            raise ValueError(f"doc_stride must be at least 1, got {self.doc_stride}.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenizedContext:
    """The word pieces of a context and the word that each of them belongs to."""

    context: examples_module.Context
    piece_ids: list[int]
    first_pieces: list[int]  # Index of each word's first piece; last, their number.
    word_of_piece: np.ndarray  # int64 [pieces], index of each piece's word.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of examples, in the order of the examples."""

    examples: Sequence[examples_module.SquadExample]
    contexts: Sequence[TokenizedContext]  # One per example; questions share them.
    sizes: WindowSizes
    vocabulary: vocabulary_module.Vocabulary
    question_ids: Sequence[np.ndarray]  # int32: the pieces of each question.
    context_ids: Sequence[np.ndarray]  # int32: the pieces of each context.
    example_index: np.ndarray  # int64 [W].
    first_piece: np.ndarray  # int64 [W]: the window's first piece, in its context.
    num_pieces: np.ndarray  # int64 [W]: pieces of the context in the window.
    span_index: np.ndarray  # int64 [W]: 0 for the first window of an example.
    # int32 [W], positions in the row. A window that does not contain the whole answer
    # has 0 for both, the position of [CLS]: "no answer here" (section 4.3 of the
    # paper). None for prediction.
    start_positions: np.ndarray | None
    end_positions: np.ndarray | None

    def __len__(self) -> int:
        return len(self.example_index)

    @property
    def unique_ids(self) -> np.ndarray:
        """The ids that the release gives to windows: int64 [W]."""
        return FIRST_UNIQUE_ID + np.arange(len(self))

    @functools.cached_property
    def context_offset(self) -> np.ndarray:
        """The position of the context's first piece in each row: int64 [W]."""
        lengths = np.array([len(ids) for ids in self.question_ids], np.int64)
        return lengths[self.example_index] + 2

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """The number of pieces in each row without padding: int64 [W]."""
        return self.context_offset + self.num_pieces + 1

    def rows(self, indices: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the features of windows.

        Args:
            indices: integers [B], indices of windows.

        Returns:
            `input_ids`, `input_mask`, `segment_ids`: int32 [B, S]. In training also
            `start_positions` and `end_positions`: int32 [B].
        """
        shape = (len(indices), self.sizes.max_seq_length)
        columns = {name: np.zeros(shape, np.int32) for name in packing.ENCODER_COLUMNS}
        cls, sep = self.vocabulary.cls_id, self.vocabulary.sep_id
        for row, window in enumerate(indices):
            example, first = self.example_index[window], self.first_piece[window]
            offset, end = self.context_offset[window], self.lengths[window] - 1
            ids = columns["input_ids"][row]
            ids[[0, offset - 1, end]] = cls, sep, sep
            ids[1 : offset - 1] = self.question_ids[example]
            ids[offset:end] = self.context_ids[example][first : first + end - offset]
            columns["input_mask"][row, : end + 1] = 1
            columns["segment_ids"][row, offset : end + 1] = 1
        if self.start_positions is not None and self.end_positions is not None:
            columns["start_positions"] = self.start_positions[indices]
            columns["end_positions"] = self.end_positions[indices]
        return columns


def is_max_context(
    windows: Windows, window: np.ndarray, places: np.ndarray
) -> np.ndarray:
    """Returns whether a window is the one that shows a piece with the most context.

    A piece of the context occurs in several windows, and each of them scores it. The
    score counts from one window only: the one in which the smaller of the numbers of
    pieces to its left and to its right is largest. At the edge of a window the encoder
    has seen the text on one side only, so the scores there are less reliable. Ties go
    to the longer window, then to the first one.

    Args:
        windows: all windows.
        window: integers [N], indices of windows.
        places: integers [N], indices of pieces in the contexts of these windows. Each
            piece is inside its window.

    Returns:
        bool [N].

    Source: _check_is_max_context of run_squad.py, 2018.
    """

    def context_in(step):
        other = np.clip(window + step, 0, len(windows) - 1)
        left = places - windows.first_piece[other]
        shorter_side = np.minimum(left, windows.num_pieces[other] - 1 - left)
        is_next = windows.span_index[other] == windows.span_index[window] + step
        score = shorter_side + packing.CONTEXT_LENGTH_WEIGHT * windows.num_pieces[other]
        return np.where(is_next & (shorter_side >= 0), score, -1)

    # The context shrinks on both sides of the best window, so its neighbors suffice.
    context = context_in(0)
    return (context > context_in(-1)) & (context >= context_in(1))


def convert_examples_to_features(
    examples: Sequence[examples_module.SquadExample],
    tokenizer: full.FullTokenizer,
    sizes: WindowSizes,
    *,
    is_training: bool,
    progress: progress_module.Progress = progress_module.report,
) -> Windows:
    """Returns the windows of examples.

    Args:
        examples: the result of `training_examples`, or the examples of `read_squad`.
        tokenizer: tokenizes questions and words of contexts.
        sizes: the lengths of windows.
        is_training: whether the windows contain the positions of the answer.
        progress: reports the number of finished examples.

    Source: convert_examples_to_features of run_squad.py, 2018.
    """
    contexts = _Contexts(tokenizer)
    tokenized_contexts, context_ids = [], []
    question_ids, parts, lengths = [], [], []
    for index, example in enumerate(examples):
        tokenized, ids = contexts.tokenized(example.context)
        tokenized_contexts.append(tokenized)
        context_ids.append(ids)
        pieces = tokenizer.tokenize(example.question_text)
        lengths.append(len(pieces))
        question = pieces[: sizes.max_query_length]
        question_ids.append(
            np.array(tokenizer.convert_tokens_to_ids(question), np.int32)
        )
        answer = None
        if is_training and not example.is_impossible:
            answer = answer_pieces(example, tokenized, tokenizer, contexts.basic_tokens)
        room = sizes.row_room - len(question)
        spans = packing.window_spans(len(tokenized.piece_ids), room, sizes.doc_stride)
        for number, (first, stop) in enumerate(spans):
            positions = _positions(answer, first, stop, len(question) + 2)
            parts.append((index, first, stop - first, number, *positions))
        if (index + 1) % EXAMPLES_PER_CALL == 0 or index + 1 == len(examples):
            progress("tokenize", index + 1, len(examples), unit="questions")
    limit = sizes.max_query_length
    text_checks.warn_of_truncated(
        lengths, room=limit, limit=f"max_query_length={limit}", inputs="questions"
    )
    table = np.array(parts, np.int64).reshape(-1, 6)
    return Windows(
        examples=examples,
        contexts=tokenized_contexts,
        sizes=sizes,
        vocabulary=tokenizer.vocabulary,
        question_ids=question_ids,
        context_ids=context_ids,
        example_index=table[:, 0],
        first_piece=table[:, 1],
        num_pieces=table[:, 2],
        span_index=table[:, 3],
        start_positions=table[:, 4].astype(np.int32) if is_training else None,
        end_positions=table[:, 5].astype(np.int32) if is_training else None,
    )


class _Contexts:
    """The word pieces of contexts; each context and each unique word once."""

    def __init__(self, tokenizer):
        self._ids_of = functools.cache(
            lambda word: tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))
        )
        # Splits each text, mostly a character, once.
        self.basic_tokens = functools.cache(tokenizer.basic_tokenizer.tokenize)
        self._contexts = {}

    def tokenized(self, context):
        """Returns a `TokenizedContext`, and its pieces as an array."""
        if id(context) not in self._contexts:
            pieces = self._tokenize(context)
            ids = np.array(pieces.piece_ids, np.int32)
            self._contexts[id(context)] = (pieces, ids)
        return self._contexts[id(context)]

    def _tokenize(self, context):
        piece_ids, first_pieces = [], [0]
        for word in context.words:
            piece_ids += self._ids_of(word)
            first_pieces.append(len(piece_ids))
        num_pieces = np.diff(first_pieces)
        return TokenizedContext(
            context=context,
            piece_ids=piece_ids,
            first_pieces=first_pieces,
            word_of_piece=np.repeat(np.arange(len(context.words)), num_pieces),
        )


def answer_pieces(
    example: examples_module.SquadExample,
    tokenized: TokenizedContext,
    tokenizer: full.FullTokenizer,
    basic_tokens: Callable[[str], Sequence[str]] | None = None,
) -> tuple[int, int]:
    """Returns the indices of the first and the last piece of the answer.

    Words are separated by white space only, so a word may be more than the answer:
    "1895" is the answer in the word "(1895-1943)". The pieces that equal the tokenized
    answer are preferred; if there are none, the answer is all pieces of its words. In
    scripts without spaces, the pieces that cover the answer's characters count.

    Source: _improve_answer_span of run_squad.py, 2018.
    """
    basic_tokens = basic_tokens or tokenizer.basic_tokenizer.tokenize
    place = _covering(example, tokenized, tokenizer.vocabulary.tokens, basic_tokens)
    if place is not None:
        return place
    first_word, last_word = examples_module.answer_words(example)
    first = tokenized.first_pieces[first_word]
    last = tokenized.first_pieces[last_word + 1] - 1
    pieces = tokenizer.tokenize(example.answers[0].text)
    answer = tokenizer.convert_tokens_to_ids(pieces)
    for start in range(first, last + 2 - len(answer)):
        if answer and tokenized.piece_ids[start : start + len(answer)] == answer:
            return start, start + len(answer) - 1
    return first, last


def _covering(example, tokenized, tokens, basic_tokens):
    """Returns the first and last piece over the answer's characters.

    Returns None in scripts with spaces, if the answer is not at its answer_start, and
    if the places of pieces are unknown.
    """
    answer, context = example.answers[0], example.context
    if not context.text.startswith(answer.text, answer.start):
        return None
    first_word, last_word = examples_module.answer_words(example)
    words = context.words[first_word : last_word + 1]
    joined = " ".join(words)
    if joined == answer.text or not alignment.is_without_spaces(joined):
        return None
    inner = []
    for number, word in enumerate(words, start=first_word):
        first, stop = tokenized.first_pieces[number : number + 2]
        pieces = [tokens[i] for i in tokenized.piece_ids[first:stop]]
        spans = alignment.piece_spans(word, pieces, basic_tokens)
        if spans is None:
            return None
        begin = answer.start - context.starts[number]
        end = begin + len(answer.text)
        inner += [first + i for i, (a, b) in enumerate(spans) if a < end and b > begin]
    return (inner[0], inner[-1]) if inner else None


def _positions(answer, first, stop, offset):
    """Returns the answer's positions in a row; those of [CLS] if it is not inside."""
    if answer is None or answer[0] < first or answer[1] >= stop:
        return 0, 0
    return answer[0] - first + offset, answer[1] - first + offset


class WindowSource(batching.ComputedSource):
    """The rows of windows.

    Rows are assembled per batch. Storing them all would repeat each context once per
    question and, where windows overlap, once more per window.
    """

    def __init__(self, windows: Windows):
        sample = windows.rows(np.zeros(1, np.int64))
        super().__init__(windows.rows, num_examples=len(windows), sample=sample)
        self._windows = windows

    def row_lengths(self) -> np.ndarray:
        """Returns the number of pieces in each row without padding: int64 [W]."""
        return self._windows.lengths
