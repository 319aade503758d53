"""Tokenizes examples and divides them into windows.

Each context, and each unique word of the contexts, is tokenized only once.
"""

import itertools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf import progress as progress_module
from bert_tf.data import batching
from bert_tf.data import schema as schema_module
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import windows as question_answering_windows
from bert_tf.tokenization import full

EXAMPLES_PER_CALL = 512  # Examples between two progress reports.


def convert_examples_to_features(
    examples: Sequence[question_answering_examples.SquadExample],
    tokenizer: full.FullTokenizer,
    sizes: question_answering_windows.WindowSizes,
    *,
    is_training: bool,
    progress: progress_module.Progress = progress_module.silent,
) -> question_answering_windows.Windows:
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
    questions, parts = [], []
    for index, example in enumerate(examples):
        tokenized, context_start = contexts.tokenized(example.context)
        question = tokenizer.tokenize(example.question_text)[: sizes.max_query_length]
        questions.append(tokenizer.convert_tokens_to_ids(question))
        answer = None
        if is_training and not example.is_impossible:
            answer = answer_pieces(example, tokenized, tokenizer)
        room = (
            sizes.max_seq_length
            - len(question)
            - question_answering_windows.NUM_SPECIAL
        )
        spans = question_answering_windows.window_spans(
            len(tokenized.piece_ids), room, sizes.doc_stride
        )
        for number, (first, count) in enumerate(spans):
            positions = _positions(answer, first, count, len(question) + 2)
            parts.append((index, context_start, first, count, number, *positions))
        if (index + 1) % EXAMPLES_PER_CALL == 0 or index + 1 == len(examples):
            progress("tokenize", index + 1, len(examples), unit="questions")
    table = np.array(parts, np.int64).reshape(-1, 7)
    return question_answering_windows.Windows(
        examples=examples,
        contexts=[contexts.tokenized(example.context)[0] for example in examples],
        sizes=sizes,
        vocabulary=tokenizer.vocabulary,
        question_ids=_concatenated(questions),
        question_splits=np.cumsum([0, *map(len, questions)]),
        context_ids=_concatenated(contexts.all_piece_ids),
        example_index=table[:, 0],
        context_start=table[:, 1],
        first_piece=table[:, 2],
        num_pieces=table[:, 3],
        span_index=table[:, 4],
        start_positions=table[:, 5].astype(np.int32) if is_training else None,
        end_positions=table[:, 6].astype(np.int32) if is_training else None,
    )


def answer_pieces(
    example: question_answering_examples.SquadExample,
    tokenized: question_answering_windows.TokenizedContext,
    tokenizer: full.FullTokenizer,
) -> tuple[int, int]:
    """Returns the indices of the first and the last piece of the answer.

    Words are separated by white space only, so a word may be more than the answer:
    "1895" is the answer in the word "(1895-1943)". The pieces that equal the tokenized
    answer are preferred; if there are none, the answer is all pieces of its words.

    Source: _improve_answer_span of run_squad.py, 2018.
    """
    first_word, last_word = question_answering_examples.answer_words(example)
    first = tokenized.first_pieces[first_word]
    last = tokenized.first_pieces[last_word + 1] - 1
    pieces = tokenizer.tokenize(example.answers[0].text)
    answer = tokenizer.convert_tokens_to_ids(pieces)
    for start in range(first, last + 2 - len(answer)):
        if answer and tokenized.piece_ids[start : start + len(answer)] == answer:
            return start, start + len(answer) - 1
    return first, last


def _positions(answer, first, count, offset):
    """Returns the answer's positions in a row; those of [CLS] if it is not inside."""
    if answer is None or answer[0] < first or answer[1] >= first + count:
        return 0, 0
    return answer[0] - first + offset, answer[1] - first + offset


class WindowSource(batching.Source):
    """The rows of windows.

    Rows are assembled per batch. Storing them all would repeat each context once per
    question and, where windows overlap, once more per window.

    Attributes:
        num_examples: number of windows, W.
        columns: the columns of a row.
    """

    def __init__(self, windows: question_answering_windows.Windows):
        self.num_examples = len(windows)
        self._windows = windows
        self.columns = tuple(
            schema_module.Column(
                name=name,
                length=column.shape[1] if column.ndim == 2 else None,
                dtype=column.dtype.name,
            )
            for name, column in windows.rows(np.zeros(1, np.int64)).items()
        )

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """Returns rows inside a tf.data function; see `batching.Source.rows`."""
        values = tf.numpy_function(
            lambda numbers: list(self._windows.rows(numbers).values()),
            [indices],
            [column.dtype for column in self.columns],
            stateful=False,
        )
        return {
            column.name: tf.ensure_shape(value, [num_rows, *column.shape])
            for column, value in zip(self.columns, values, strict=True)
        }

    def row_lengths(self) -> np.ndarray:
        """Returns the number of pieces in each row without padding: int64 [W]."""
        return self._windows.lengths


class _Contexts:
    """Tokenizes each context once, and each unique word once."""

    def __init__(self, tokenizer):
        self._ids_of = _WordIds(tokenizer)
        self._known = {}
        self._num_pieces = 0
        self.all_piece_ids = []

    def tokenized(self, context):
        """Returns a tokenized context and the start of its pieces in `context_ids`."""
        if id(context) not in self._known:
            tokenized = self._tokenize(context)
            self._known[id(context)] = (tokenized, self._num_pieces)
            self._num_pieces += len(tokenized.piece_ids)
            self.all_piece_ids.append(tokenized.piece_ids)
        return self._known[id(context)]

    def _tokenize(self, context):
        piece_ids, first_pieces = [], [0]
        for word in context.words:
            piece_ids += self._ids_of[word]
            first_pieces.append(len(piece_ids))
        return question_answering_windows.TokenizedContext(
            context=context,
            piece_ids=piece_ids,
            first_pieces=first_pieces,
            word_of_piece=np.repeat(
                np.arange(len(context.words)), np.diff(first_pieces)
            ),
        )


class _WordIds(dict):
    """Maps a word to the ids of its pieces; tokenizes a new word on first use."""

    def __init__(self, tokenizer):
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, word):
        pieces = self._tokenizer.tokenize(word)
        ids = self[word] = self._tokenizer.convert_tokens_to_ids(pieces)
        return ids


def _concatenated(lists):
    return np.fromiter(itertools.chain.from_iterable(lists), np.int32)
