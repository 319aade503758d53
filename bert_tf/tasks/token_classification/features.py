"""The record of a tagger, its predictor, and how words become rows of word pieces.

Shape letters: N rows, S sequence, W words, C classes.
"""

import dataclasses
import functools
import itertools
import statistics
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.data import packing
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import input_features
from bert_tf.modeling import token_classifier
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import schemes
from bert_tf.tokenization import words as words_module

# Words per call of the tokenizer, enough to amortize the cost of a call.
WORDS_PER_CALL = 16384


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    """How to apply a tagger to new sentences: the content of task.json."""

    KIND = "token_classification"

    labels: tuple[str, ...]  # The tags, in the order of the outputs.
    tag_scheme: str  # One of `schemes.SCHEMES`.
    doc_stride: int  # Word pieces between the starts of two windows.
    # Windows cover documents, not sentences: the encoder sees the neighboring
    # sentences, "the maximal document context" of section 5.3 of the paper.
    document_context: bool = False
    # Key of `token_classifier.FEATURE_BASED`. None: the encoder is fine-tuned.
    feature_based: str | None = None
    # Columns of the training files, also used for other files by default.
    word_column: int = 0
    tag_column: int = 1
    # The usual form of words, by the word in lower case. None: no true-casing.
    true_cases: Mapping[str, str] | None = None
    # Words of the training data that plain text keeps whole; see `words.split_text`.
    whole_words: tuple[str, ...] = ()
    longest_word: int = 0  # Characters of a word of the training data; 0: unknown.

    def __post_init__(self):
        if not 1 <= self.doc_stride <= self.capacity:
            raise ValueError(
                f"max_seq_length {self.max_seq_length} and doc_stride "
                f"{self.doc_stride}: expected a stride of 1 to max_seq_length - 2, or "
                "words would be skipped; raise max_seq_length."
            )

    @property
    def capacity(self) -> int:
        """The maximum number of pieces in a window, without [CLS] and [SEP]."""
        return self.max_seq_length - 2

    def entity_begins(self) -> list[list[bool]]:
        """Returns whether an entity begins at each label, after each label and O."""
        return [
            [schemes.begins_entity(before, tag, self.tag_scheme) for tag in self.labels]
            for before in (*self.labels, schemes.OUTSIDE)
        ]

    def label_types(self) -> list[str]:
        """Returns the type of the entities of each label."""
        return [schemes.type_of(tag, self.tag_scheme) for tag in self.labels]

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> token_classifier.BertTokenClassifier:
        """See `TaskRecord.create_model`."""
        return token_classifier.BertTokenClassifier(
            config,
            num_labels=len(self.labels),
            feature_based=self.feature_based,
            dtype=dtype,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Features:
    """Rows of pieces and the position of each word's tag.

    Every word has its tag at one piece of one row. Words are in the order of the
    sentences.
    """

    columns: Mapping[str, np.ndarray]  # int32 [N, S] each, including `tag_ids`.
    # int64 [W], the row of each word; in ascending order, except for `selected` rows.
    rows: np.ndarray
    positions: np.ndarray  # int64 [W], the position of its first piece in the row.

    def first_pieces(self, values: np.ndarray) -> np.ndarray:
        """Returns the values [W, ...] of [N, S, ...] at the words' first pieces."""
        return values[self.rows, self.positions]

    def selected(self, numbers: Sequence[int]) -> tuple[np.ndarray, "Features"]:
        """Returns which words are in the given rows, bool [W], and these rows."""
        place = np.full(len(self.columns["input_ids"]), -1)
        place[numbers] = np.arange(len(numbers))
        rows = place[self.rows]
        is_here = rows >= 0
        return is_here, Features(
            columns={name: c[numbers] for name, c in self.columns.items()},
            rows=rows[is_here],
            positions=self.positions[is_here],
        )


def convert_sentences_to_features(
    sentences: Sequence[examples.Sentence], tokenizer: Any, record: Record
) -> Features:
    """Returns the features of sentences and the positions of their words.

    Words are tokenized one by one, and the first piece of a word carries its tag
    (arXiv:1810.04805, section 5.3). The other pieces have the tag -1: they take part in
    attention, but in neither loss nor prediction. So every word counts once, however
    many pieces it has, and its pieces cannot get contradicting tags.

    A sentence (with `document_context` a document) that is longer than a row is divided
    into overlapping windows. Each word has its tag in only one of them: the one in
    which the smaller of the numbers of pieces before and after it is largest, since
    the encoder sees little context at the edge of a window.

    Args:
        sentences: at least one sentence; W is the number of their words.
        tokenizer: an `InGraphTokenizer` (fast) or a `FullTokenizer`.
        record: of the model. Words without one of its tags have -1 in `tag_ids`.

    Source: section 5.3 of the paper, and "Tokenization" in the README of 2018.
    """
    words: list[Sequence[str]] = [sentence.words for sentence in sentences]
    if record.true_cases is not None:
        words = [words_module.true_cased(one, record.true_cases) for one in words]
    piece_ids = _piece_ids(words, tokenizer)
    label_ids = {label: index for index, label in enumerate(record.labels)}
    row_pieces: list[Sequence[int]] = []
    rows, positions, tag_ids = [], [], []
    for unit in _units(sentences, record):
        ids = [piece_ids[word] for index in unit for word in words[index]]
        pieces = np.concatenate(ids)
        sizes = np.array([len(one) for one in ids])
        first = np.cumsum(sizes) - sizes  # The index of each word's first piece.
        spans = packing.window_spans(len(pieces), record.capacity, record.doc_stride)
        chosen = packing.most_context(spans, first)
        for number, (start, end) in enumerate(spans):
            here = first[chosen == number]
            if len(here):
                rows.append(np.full(len(here), len(row_pieces)))
                positions.append(here - start + 1)  # After [CLS].
                row_pieces.append(pieces[start:end].tolist())
        for sentence in map(sentences.__getitem__, unit):
            tags = sentence.tags or [""] * len(sentence.words)
            tag_ids += [label_ids.get(tag, token_classifier.NO_TAG) for tag in tags]
    columns = packing.pack_ids(tokenizer.vocabulary, row_pieces, record.max_seq_length)
    columns["tag_ids"] = np.full_like(columns["input_ids"], token_classifier.NO_TAG)
    place = (np.concatenate(rows), np.concatenate(positions))
    columns["tag_ids"][place] = tag_ids
    return Features(columns=columns, rows=place[0], positions=place[1])


def _units(sentences, record):
    """Returns lists of sentence indices; windows are cut from each list as a whole."""
    if not record.document_context:
        return [[index] for index in range(len(sentences))]
    units: dict[int, list[int]] = {}
    for index, sentence in enumerate(sentences):
        units.setdefault(sentence.document, []).append(index)
    return list(units.values())


def _piece_ids(sentences, tokenizer):
    """Returns the ids of the pieces of each unique word.

    A word without pieces, such as one of control characters, becomes [UNK], since it
    still needs a piece for its tag.
    """
    words = list(dict.fromkeys(word for words in sentences for word in words))
    unknown = [tokenizer.vocabulary.unk_id]
    piece_ids: dict[str, list[int]] = {}
    for start in range(0, len(words), WORDS_PER_CALL):
        part = words[start : start + WORDS_PER_CALL]
        ids = packing.token_ids(tokenizer, part)
        piece_ids |= {
            word: pieces or unknown for word, pieces in zip(part, ids, strict=True)
        }
        progress_module.report("tokenize", len(piece_ids), len(words), unit="words")
    return piece_ids


def tagged(logits: np.ndarray, labels: Sequence[str]) -> list[tuple[str, float]]:
    """Returns the best tag of each word and its probability, from logits [W, C]."""
    best = np.argmax(logits, axis=-1)
    highest = np.max(logits, axis=-1, keepdims=True)
    probabilities = 1 / np.sum(np.exp(logits - highest), axis=-1)
    names = [labels[index] for index in best]
    return list(zip(names, probabilities.tolist(), strict=True))


def answer(
    words: words_module.Words,
    tagged_words: Iterable[tuple[str, float]],
    scheme: str | None = None,
) -> dict[str, Any]:
    """Returns the answer of `Predictor.predict` for a text.

    Args:
        words: of the text.
        tagged_words: the `tagged` words.
        scheme: of the tags, to add probabilities and entities; None: without them.
    """
    pairs = list(tagged_words)
    tags, probabilities = [tag for tag, _ in pairs], [value for _, value in pairs]
    starts, ends = list(words.starts), list(words.ends)
    answer = {"words": list(words.words), "tags": tags, "starts": starts, "ends": ends}
    if scheme is None:
        return answer
    entities = [
        {
            "label": label,
            "text": words.text[starts[first] : ends[last]],
            "start": starts[first],
            "end": ends[last],
            "score": statistics.fmean(probabilities[first : last + 1]),
        }
        for label, first, last in schemes.entities(tags, scheme)
    ]
    return {**answer, "probabilities": probabilities, "entities": entities}


def line_answers(
    source: str | Sequence[examples.Sentence],
    tagged_words: Sequence[tuple[str, float]],
    record: Record,
    *,
    entities: bool,
) -> Iterator[dict[str, Any]]:
    """Yields the records of predictions.jsonl: one per line of text, or per sentence.

    Args:
        source: path of plain text, or the sentences of a column file.
        tagged_words: the `tagged` words of all of them.
        record: of the model.
        entities: whether to add probabilities and entities.

    Raises:
        ValueError: the plain text has changed since it was tagged.
    """
    if isinstance(source, str):
        lines = examples.plain_text_words(source, frozenset(record.whole_words))
        numbered = list(enumerate(lines, start=1))
    else:
        numbered = [(one.lines[0], words_module.joined(one.words)) for one in source]
    if len(tagged_words) != sum(len(words.words) for _, words in numbered):
        raise ValueError(f"{source} changed while it was tagged; predict again.")
    rest = iter(tagged_words)
    for line, words in numbered:
        own = itertools.islice(rest, len(words.words))
        yield {"line": line} | answer(
            words, own, record.tag_scheme if entities else None
        )


class Predictor(fine_tuning_predictor.Predictor):
    """A trained tagger; see `fine_tuning.predictor.Predictor`.

    An input is a sentence: a list of words, or a string that `words.split_text`
    divides. An answer has lists with one element per word: `words`, `tags`, `starts`
    and `ends`, such that text[start:end] is the word. A list of words is treated as a
    text with one space between words.
    """

    RECORD = Record
    UNIT = "sentences"

    task: Record

    @classmethod
    def record_of_checkpoint(
        cls, settings: fine_tuning_predictor.LoadSettings
    ) -> Record:
        """See `Predictor.record_of_checkpoint`."""
        head, values = settings.source.head, settings.task_values()
        labels = head.labels or tuple(map(str, range(head.num_labels or 0)))
        return Record(
            labels=labels,
            tag_scheme=schemes.scheme_of_labels(labels),
            doc_stride=max(1, (values["max_seq_length"] - 2) // 2),
            **values,
        )

    def predict(
        self,
        inputs: Iterable[Any],
        *,
        entities: bool = False,
    ) -> list[dict[str, Any]]:
        """Returns one answer per sentence; see `Predictor.predict`.

        Args:
            inputs: any iterable of sentences.
            entities: whether answers also have `probabilities`, one per tag, and
                `entities`, dicts of `label`, `text`, `start`, `end` (characters of the
                sentence) and `score`, the mean of the probabilities of its tags.
        """
        return self._answered(
            self.items(inputs),
            functools.partial(self.answers, entities=entities),
            length_of=lambda item: given_data.total_length(item.words),
        )

    def items(self, inputs: Iterable[Any]) -> list[words_module.Words]:
        """See `Predictor.items`."""
        whole_words = frozenset(self.task.whole_words)
        sentences = given_data.read(inputs, "a list of sentences")
        words = [
            _words_of(index, sentence, whole_words)
            for index, sentence in enumerate(sentences)
        ]
        words_module.warn_of_undivided(
            (
                w
                for w, one in zip(words, sentences, strict=True)
                if isinstance(one, str)
            ),
            whole_words,
            self.task.longest_word,
            advice='Pass the words as a list, such as predict([["Anna", ",", "Bob"]]).',
        )
        return words

    def answers(
        self, items: Sequence[words_module.Words], *, entities: bool = False
    ) -> list[dict[str, Any]]:
        """See `Predictor.answers`."""
        sentences = [
            examples.Sentence(words=item.words, document=index)
            for index, item in enumerate(items)
            if item.words
        ]
        rest = iter(self._tagged(sentences) if sentences else ())
        scheme = self.task.tag_scheme if entities else None
        return [
            answer(item, itertools.islice(rest, len(item.words)), scheme)
            for item in items
        ]

    def _tagged(self, sentences):
        """Returns the `tagged` words of all sentences."""
        labels = self.task.labels
        features = convert_sentences_to_features(sentences, self.tokenizer, self.task)
        lengths = np.sum(features.columns["input_mask"], axis=1)
        logits = np.zeros((len(features.rows), len(labels)))
        for numbers in fine_tuning_predictor.row_batches(lengths, self.batch_size):
            is_here, part = features.selected(numbers)
            rows = {name: part.columns[name] for name in input_features.SEQUENCE}
            rows = fine_tuning_predictor.without_padding(rows)
            logits[is_here] = part.first_pieces(np.asarray(self.apply(rows)))
        return tagged(logits, labels)


def _words_of(index, item, whole_words):
    if isinstance(item, str):
        return words_module.split_text(item, whole_words)
    if not isinstance(item, Sequence) or not all(
        isinstance(word, str) and word for word in item
    ):
        raise ValueError(
            f"Input {index} is {item!r:.60}; expected a string or a list of non-empty "
            "words."
        )
    return words_module.joined(item)
