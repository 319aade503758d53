"""A trained tagger, ready to answer, from nothing but its run folder."""

import dataclasses
import re
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints import loading
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import token_classifier
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import features as features_module
from bert_tf.tasks.token_classification import predictions
from bert_tf.tasks.token_classification import run_setup
from bert_tf.tokenization import characters
from bert_tf.tokenization import in_graph

ROWS_PER_CALL = 32


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words:
    """The words of a text, and where they are in it."""

    words: tuple[str, ...]
    starts: tuple[int, ...]  # Character of the text at which each word starts.
    ends: tuple[int, ...]  # Character after its last one.


class TrainedTagger:
    """The last checkpoint of a training run, and all that its model needs.

    Args:
        run_dir: `output_dir` of a training run.

    Attributes:
        task: `token_classification.task.Task`.
        config: `BertConfig`.
        vocabulary: `Vocabulary`.
        tokenizer: `InGraphTokenizer`.
        model: `BertTokenClassifier`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder holds no trained tagger.
    """

    def __init__(self, run_dir: str):
        self.task = run_setup.read_task(run_dir)
        self.config = run_files.read_config(run_dir)
        self.vocabulary = run_files.read_vocabulary(run_dir)
        self.config.check_vocabulary_size(len(self.vocabulary))
        self.tokenizer = in_graph.InGraphTokenizer(
            self.vocabulary, do_lower_case=self.task.do_lower_case
        )
        self.model = token_classifier.BertTokenClassifier(
            self.config,
            num_labels=len(self.task.labels),
            feature_based=self.task.feature_based,
        )
        self.model.build()
        loading.load_run(self.model, run_dir)
        columns = ("input_ids", "input_mask", "segment_ids")
        self._logits = tf.function(
            lambda features: self.model(features)["logits"],
            input_signature=[
                {name: tf.TensorSpec([None, None], tf.int32) for name in columns}
            ],
        )

    def predict(self, inputs) -> list[dict]:
        """Returns the model's answers.

        Args:
            inputs: list of sentences: each a text, which is split at white space and
                punctuation, or a list of its words. Long ones are read in windows.

        Returns:
            For each a dict of equally long lists: `words`, `tags`, `starts` and
            `ends`: the word's first character in the text, and the one after its last.
            The text of a list of words has a space between them.

        Raises:
            ValueError: the inputs are no such list.
        """
        split = [_words_of(index, item) for index, item in enumerate(_listed(inputs))]
        sentences = [
            examples.Sentence(words=item.words, document=index)
            for index, item in enumerate(split)
            if item.words
        ]
        tags = iter(self._tags(sentences) if sentences else ())
        return [
            {
                "words": list(item.words),
                "tags": [next(tags) for _ in item.words],
                "starts": list(item.starts),
                "ends": list(item.ends),
            }
            for item in split
        ]

    def _tags(self, sentences):
        """Returns the tags of all words of all sentences."""
        features = features_module.convert_sentences_to_features(
            sentences, self.task.labels, self.tokenizer, self.task.windowing
        )
        logits = []
        for part in features.parts(ROWS_PER_CALL):
            longest = int(np.max(np.sum(part.columns["input_mask"], axis=1)))
            columns = {
                name: part.columns[name][:, :longest]
                for name in ("input_ids", "input_mask", "segment_ids")
            }
            logits.append(part.of_words(self._logits(columns).numpy()))
        return predictions.best_tags(np.concatenate(logits), self.task.labels)


def split_text(text: str) -> Words:
    """Returns the words of a text: what stands between white space and punctuation.

    Punctuation marks are words of one character, as are Chinese characters.

    Example:
        >>> split_text("Rome, too.")
        Words(words=('Rome', ',', 'too', '.'), starts=(0, 4, 6, 9), ends=(4, 5, 9, 10))
    """
    found = list(_WORD.finditer(text))
    return Words(
        words=tuple(match.group() for match in found),
        starts=tuple(match.start() for match in found),
        ends=tuple(match.end() for match in found),
    )


def _listed(inputs):
    if isinstance(inputs, str):
        raise ValueError("Expected a list of sentences, got one string.")
    return list(inputs)


def _words_of(index, item) -> Words:
    if isinstance(item, str):
        return split_text(item)
    if not isinstance(item, Sequence) or not all(
        isinstance(word, str) and word for word in item
    ):
        raise ValueError(
            f"Input {index} is {item!r:.60}; expected a text, or a list of words that "
            "are not empty."
        )
    lengths = np.array([len(word) for word in item], np.int64)
    starts = np.cumsum(lengths + 1) - lengths - 1
    return Words(
        words=tuple(item),
        starts=tuple(starts.tolist()),
        ends=tuple((starts + lengths).tolist()),
    )


def _character_class(codes):
    return "".join(re.escape(chr(code)) for code in sorted(codes))


def _word_pattern():
    alone = _character_class(characters.PUNCTUATION)
    alone += "".join(
        f"{chr(block.start)}-{chr(block.stop - 1)}"
        for block in characters.CHINESE_BLOCKS
    )
    return re.compile(f"[{alone}]|[^{alone}{_character_class(characters.WHITESPACE)}]+")


_WORD = _word_pattern()
