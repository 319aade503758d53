"""XNLI: MNLI in 15 languages, with separate languages for training and evaluation.

The folder contains the unpacked files of XNLI-MT-1.0.zip and XNLI-1.0.zip, with or
without their own folders:

- multinli/multinli.train.LANGUAGE.tsv: machine translations of MNLI.
- xnli.dev.tsv and xnli.test.tsv: all languages in one file.
"""

import dataclasses
import itertools
import os
from collections.abc import Sequence

from bert_tf import files
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import glue

# The language of the release.
DEFAULT_LANGUAGE = "zh"
ALL_LANGUAGES = "all"
TRAIN_FILE = "multinli.train.{}.tsv"
DEV_FILE = "xnli.dev.tsv"
TEST_FILE = "xnli.test.tsv"
_LANGUAGE = "language"
_TRAIN_COLUMNS = examples_module.Columns(text="premise", text_b="hypo", index="index")
# The label "contradiction" in the training files.
_CONTRADICTORY = "contradictory"
_FOLDERS = ("", "XNLI-1.0", "XNLI-MT-1.0", "multinli", "XNLI-MT-1.0/multinli")


class XnliProcessor(examples_module.DataProcessor):
    """Reads XNLI in one or several languages.

    Args:
        train_languages: such as ("en",). Their files are concatenated.
        eval_languages: such as ("en", "de"), or ("all",) for all languages in the file.
            Default: the training languages.

    Source: XnliProcessor of run_classifier.py, 2018, which had one language for both.
    """

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", label="gold_label", index="index"
    )
    labels = glue.ENTAILMENT_LABELS

    def __init__(
        self,
        train_languages: Sequence[str] = (),
        eval_languages: Sequence[str] = (),
    ):
        self._train_languages = tuple(train_languages) or (DEFAULT_LANGUAGE,)
        self._eval_languages = tuple(eval_languages) or self._train_languages

    def get_train_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Returns the examples of all training languages."""
        found = []
        for path in self.get_train_files(data_dir):
            labels = [*glue.ENTAILMENT_LABELS, _CONTRADICTORY]
            read = examples_module.read_examples(
                path,
                _TRAIN_COLUMNS,
                "train",
                labels=labels,
                broken_rows=self.broken_rows,
            )
            found += [_as_contradiction(example) for example in read]
        return found

    def get_dev_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Returns the development examples in all evaluation languages."""
        return list(itertools.chain(*self.get_dev_sets(data_dir).values()))

    def get_test_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Returns the test examples in all evaluation languages, without labels."""
        return list(itertools.chain(*self.get_test_sets(data_dir).values()))

    def get_dev_sets(
        self, data_dir: str
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns "dev", or a set "dev_LANGUAGE" for each of several languages."""
        return self._sets(data_dir, "dev", self.columns, self.labels)

    def get_test_sets(
        self, data_dir: str
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns "test", or a set "test_LANGUAGE" for each of several languages."""
        return self._sets(data_dir, "test", self.columns.without_label(), ())

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the paths of the first training file, dev and test."""
        return {
            "train": self.get_train_files(data_dir)[0],
            "dev": self._path(data_dir, DEV_FILE),
            "test": self._path(data_dir, TEST_FILE),
        }

    def get_train_files(self, data_dir: str) -> list[str]:
        """Returns the path of the file of each training language."""
        return [
            self._path(data_dir, TRAIN_FILE.format(language))
            for language in self._train_languages
        ]

    def get_languages(self) -> list[str]:
        """Returns the training languages."""
        return list(self._train_languages)

    def get_eval_languages(self) -> list[str]:
        """Returns the languages to evaluate and to predict; "all" means every one."""
        return list(self._eval_languages)

    def _path(self, data_dir: str, name: str) -> str:
        """Returns the path of a file, in the folder or in those of the zip files."""
        paths = [os.path.join(data_dir, folder, name) for folder in _FOLDERS]
        return next(filter(files.exists, paths), paths[0])

    def _sets(self, data_dir, part, columns, labels):
        path = self.get_files(data_dir)[part]
        rows_of: dict[str, list[tables.Row]] = {}
        names = [*columns.names(), _LANGUAGE]
        for row in tables.read_table(path, names, broken_rows=self.broken_rows):
            rows_of.setdefault(row.cells[_LANGUAGE], []).append(row)
        languages = self._eval_languages
        if languages == (ALL_LANGUAGES,):
            languages = tuple(sorted(rows_of))
        for language in languages:
            if language not in rows_of:
                raise ValueError(
                    f"{path} has no rows in the language {language!r}; its languages "
                    f"are {', '.join(sorted(rows_of))}."
                )
        is_one = len(languages) == 1
        return {
            part if is_one else f"{part}_{language}": examples_module.examples_of(
                rows_of[language],
                columns,
                part,
                labels=labels,
                first_row=1,
                broken_rows=self.broken_rows,
            )
            for language in languages
        }


def _as_contradiction(example):
    if example.label != _CONTRADICTORY:
        return example
    return dataclasses.replace(example, label=glue.ENTAILMENT_LABELS[0])
