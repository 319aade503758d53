"""`FullTokenizer` of a folder, a file or a name; called, it returns features."""

import os
import re
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import cast

import numpy as np

from bert_tf import files
from bert_tf.data import packing
from bert_tf.tokenization import basic
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

# The files of checkpoints. Every other file is taken for a vocabulary.
_CHECKPOINT_FILE = re.compile(
    r".*\.(keras|h5|safetensors|json|index|meta|data-\d+-of-\d+|pb|bin)"
)


class FullTokenizer(full.FullTokenizer):
    """The release's tokenizer, with the settings of a checkpoint.

    Args:
        vocab_file: the file of a vocabulary, or a `Vocabulary`, as in 2018; or a source
            that also has settings: a checkpoint of any format (a folder, a file or a
            name, as for `bert_tf.load_checkpoint`), a run's folder, a folder with only
            the files of a tokenizer, an opened `Source`, or another `FullTokenizer`.
        do_lower_case: whether to lowercase. None: as the source says; True for a
            vocabulary, as in 2018.
        strip_accents: whether to strip accents. None: as the source says, or else the
            same as `do_lower_case`.
        never_split: tokens of the vocabulary that are kept whole wherever they occur
            in a text, in addition to those that the source names.

    Attributes:
        max_seq_length: the longest row that the checkpoint's model takes, in word
            pieces; None if the source does not say.

    Raises:
        OSError: there is no such file or checkpoint, or it cannot be read.
        ValueError: a file is damaged, there is no vocabulary, or an argument
            contradicts the source.
        ImportError: the format needs a package that is not installed.

    Example:
        >>> tokenizer = bert_tf.FullTokenizer("bert-base-uncased")
        >>> tokenizer.tokenize("The cat sat.")
        ['the', 'cat', 'sat', '.']
        >>> tokenizer(["The cat sat."], max_seq_length=8)["input_ids"]
        array([[ 101, 1996, 4937, 2938, 1012,  102,    0,    0]], dtype=int32)
    """

    def __init__(
        self,
        vocab_file: Any,
        do_lower_case: bool | None = None,
        *,
        strip_accents: bool | None = None,
        never_split: Sequence[str] = (),
    ):
        self.max_seq_length: int | None = None
        if _is_vocabulary(vocab_file):
            super().__init__(
                vocab_file,
                True if do_lower_case is None else do_lower_case,
                strip_accents=strip_accents,
                never_split=never_split,
            )
            return
        # Imported here because it needs Keras, which a vocabulary does not.
        from bert_tf.checkpoints import tokenizer_settings

        text = tokenizer_settings.find(
            vocab_file,
            do_lower_case=do_lower_case,
            strip_accents=strip_accents,
            never_split=basic.checked_never_split(never_split),
        )
        vocabulary = cast(vocabulary_module.Vocabulary, text.vocabulary)
        super().__init__(vocabulary, **text.tokenizer_arguments())
        self.max_seq_length = text.max_seq_length

    def __call__(
        self,
        texts: Iterable[str],
        texts_b: Iterable[str] | None = None,
        *,
        max_seq_length: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Returns the encoder's features of some texts, or pairs of texts.

        Args:
            texts: B texts.
            texts_b: B second segments, or None.
            max_seq_length: length of the rows, S; longer texts are cut at the end, of a
                pair the longer one first. None: rows are as long as the longest text
                needs, and at most `self.max_seq_length`.

        Returns:
            `input_ids`, `input_mask`, `segment_ids`: int32 [B, S].

        Raises:
            ValueError: `texts` is one string or no list, `texts_b` has a different
                length, or there is no maximum length.
        """
        features = packing.pack(
            self,
            _listed(texts),
            texts_b=None if texts_b is None else _listed(texts_b),
            max_seq_length=self.longest_row(max_seq_length),
        )
        if max_seq_length is None:
            longest = int(features["input_mask"].sum(axis=1).max(initial=0))
            features = {name: column[:, :longest] for name, column in features.items()}
        return features

    def longest_row(self, max_seq_length: int | None = None) -> int:
        """Returns the given length of a row, or else the one that the source states.

        Raises:
            ValueError: neither is known.
        """
        longest = self.max_seq_length if max_seq_length is None else max_seq_length
        if longest is None:
            raise ValueError(
                "A vocabulary does not say how long a row may be; pass max_seq_length."
            )
        return longest


def _is_vocabulary(source: Any) -> bool:
    """Returns whether a source is only a vocabulary or its file."""
    if not isinstance(source, str | os.PathLike):
        return isinstance(source, vocabulary_module.Vocabulary)
    path = os.fspath(source)
    if path.endswith(".txt"):
        return not files.is_folder(path)
    is_file = files.exists(path) and not files.is_folder(path)
    return is_file and not _CHECKPOINT_FILE.fullmatch(path)


def _listed(texts: Iterable[str]) -> Sequence[str]:
    # Passes a single string on, which `pack` refuses: its characters are not texts.
    if isinstance(texts, str):
        return texts
    if not isinstance(texts, Iterable) and not hasattr(texts, "__iter__"):
        raise ValueError(
            f"Expected a list of texts, got a value of type {type(texts).__name__}."
        )
    return list(texts)
