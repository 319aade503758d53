"""XNLI from TensorFlow Datasets.

`xnli` has the development and test sets. `xtreme_xnli` has a training set: MNLI with
the translations of XTREME, which differ from those of XNLI's own authors.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import cast

from bert_tf.data import named_datasets
from bert_tf.tasks.classification import data_options
from bert_tf.tasks.classification import xnli

_TRAINING, _OTHERS = data_options.TFDS_XNLI
_TAKEN_FOR_BREAKS = str.maketrans("\t\r\n", "   ")


class TfdsXnliProcessor(xnli.XnliProcessor):
    """Reads XNLI by name. `data_dir` is the folder of TensorFlow Datasets.

    Args:
        options: of the run, with `tfds_name`.

    Raises:
        ImportError, OSError, ValueError: on reading; see `named_datasets.part_file`.
    """

    def __init__(self, options: data_options.DataOptions):
        super().__init__(options.train_language, options.eval_language)
        self._options = options

    def get_files(self, data_dir: str | None = None) -> dict[str, str]:
        """Returns the paths of the sets that the run reads, which are then downloaded.

        The training set is much larger than the others.
        """
        return {
            part: self.get_train_files(data_dir)[0]
            if part == "train"
            else self._path(data_dir, {"dev": xnli.DEV_FILE}.get(part, xnli.TEST_FILE))
            for part in self._options.sets_to_read
        }

    def get_train_files(self, data_dir: str | None = None) -> list[str]:
        """Returns the path of the file of each training language."""
        if "train" not in self._options.sets_to_read:
            return []
        return super().get_train_files(data_dir or "")

    def _path(self, data_dir: str | None, name: str) -> str:
        """Returns the path of a file in XNLI's own format."""
        if name in (xnli.DEV_FILE, xnli.TEST_FILE):
            options = dataclasses.replace(self._options, tfds_name=_OTHERS)
            number = 1 if name == xnli.DEV_FILE else 2
            lines, extension = evaluation_lines, ".tsv"
        else:
            options = dataclasses.replace(self._options, tfds_name=_TRAINING)
            number, language = 0, name.split(".")[-2]
            lines = functools.partial(training_lines, language=language)
            extension = f".{language}.tsv"
        return cast(str, named_datasets.part_file(options, number, lines, extension))


def training_lines(
    data: named_datasets.DataSet, split: str, *, language: str
) -> Iterator[str]:
    """Yields the lines of multinli.train.LANGUAGE.tsv.

    Args:
        data: xtreme_xnli.
        split: of it.
        language: such as "zh".

    Raises:
        ValueError: the data set does not have the language.
    """
    yield "premise\thypo\tlabel\n"
    for record in data.records(split):
        texts = _texts_by_language(record)
        if language not in texts:
            raise ValueError(
                f"--train_language={language}: {_TRAINING} has no such language, only "
                f"{', '.join(sorted(texts))}."
            )
        yield "\t".join([*texts[language], record["label"]]) + "\n"


def evaluation_lines(data: named_datasets.DataSet, split: str) -> Iterator[str]:
    """Yields the lines of xnli.dev.tsv or xnli.test.tsv. Arguments as above."""
    yield "language\tgold_label\tsentence1\tsentence2\n"
    for record in data.records(split):
        for language, texts in _texts_by_language(record).items():
            yield "\t".join([language, record["label"], *texts]) + "\n"


def _texts_by_language(record):
    """Returns {language: (premise, hypothesis)}."""
    hypotheses = record["hypothesis"]
    return {
        code: (_cell(record["premise"][code]), _cell(text))
        for code, text in zip(
            hypotheses["language"], hypotheses["translation"], strict=True
        )
    }


def _cell(text):
    return text.translate(_TAKEN_FOR_BREAKS)
