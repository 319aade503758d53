"""GLUE's tasks, each from the folder of files that GLUE hands out for it.

What a class calls `parts` are the names of these files. Sets to evaluate on start with
"dev", sets to predict with "test".
"""

import logging
import os

from bert_tf import files
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds

logger = logging.getLogger(__name__)

# GLUE's files of CoLA have no header, apart from test.tsv.
_COLA_HEADER = ("source", "label", "original_label", "sentence")
_INDEX = "index"
_PARTS = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
_PARTS_OF_MNLI = {
    "train": "train.tsv",
    "dev": "dev_matched.tsv",
    "dev_mismatched": "dev_mismatched.tsv",
    "test": "test_matched.tsv",
    "test_mismatched": "test_mismatched.tsv",
}
_PARTS_OF_AX = {"dev": "diagnostic-full.tsv", "test": "diagnostic.tsv"}
# The order of the release's MnliProcessor and XnliProcessor.
ENTAILMENT_LABELS = ("contradiction", "entailment", "neutral")


class GlueProcessor(examples_module.DataProcessor):
    """A task in files with named columns; subclasses say which."""

    columns: examples_module.Columns = examples_module.Columns(index=_INDEX)
    header: tuple[str, ...] | None = None  # Of training and dev files without one.
    labels: tuple[str, ...] = ("0", "1")
    parts = _PARTS
    # Names of the answer files that GLUE's server expects, one per test set.
    submitted_as: tuple[str, ...] = ()

    def get_train_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Returns the examples of train.tsv."""
        return self.read_labelled(data_dir, "train")

    def get_dev_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Returns the examples of dev.tsv, or of the first of several."""
        return self.read_labelled(data_dir, "dev")

    def get_test_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Returns the examples of test.tsv, or of the first of several; no labels."""
        return self._read_unlabelled(data_dir, "test")

    def get_dev_sets(
        self, data_dir: str
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns the examples of all files to evaluate on."""
        return {
            part: self.read_labelled(data_dir, part)
            for part in self.parts
            if part.startswith("dev")
        }

    def get_test_sets(
        self, data_dir: str
    ) -> dict[str, list[examples_module.InputExample]]:
        """Returns the examples of all files to predict."""
        return {
            part: self._read_unlabelled(data_dir, part)
            for part in self.parts
            if part.startswith("test")
        }

    def get_submission_files(self) -> dict[str, str]:
        """Returns the names that GLUE's server expects."""
        parts = [part for part in self.parts if part.startswith("test")]
        return dict(zip(parts, self.submitted_as, strict=True))

    def get_labels(self) -> list[str]:
        """Returns the names of the classes; none of numbers."""
        return list(self.labels)

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the paths of the task's files."""
        return {part: os.path.join(data_dir, name) for part, name in self.parts.items()}

    def get_languages(self) -> list[str]:
        """Returns the code of English."""
        return ["en"]

    def read_labelled(
        self, data_dir: str, part: str
    ) -> list[examples_module.InputExample]:
        """Returns the examples of one file, with labels."""
        return examples_module.read_examples(
            self.get_files(data_dir)[part],
            self.columns,
            part,
            labels=self.get_labels(),
            header=self.header,
            broken_rows=self.broken_rows,
        )

    def _read_unlabelled(self, data_dir, part):
        path = self.get_files(data_dir)[part]
        return examples_module.read_examples(
            path, self.columns.without_label(), part, broken_rows=self.broken_rows
        )


class ColaProcessor(GlueProcessor):
    """CoLA: is a sentence acceptable English? Scored by Matthews' correlation."""

    columns = examples_module.Columns(text="sentence", index=_INDEX)
    header = _COLA_HEADER
    submitted_as = ("CoLA.tsv",)


class Sst2Processor(GlueProcessor):
    """SST-2: does a sentence of a film review praise? Scored by accuracy."""

    columns = examples_module.Columns(text="sentence", index=_INDEX)
    submitted_as = ("SST-2.tsv",)


class MrpcProcessor(GlueProcessor):
    """MRPC: do two sentences say the same? Scored by F1 and accuracy."""

    columns = examples_module.Columns(
        text="#1 String", text_b="#2 String", label="Quality", index=_INDEX
    )
    submitted_as = ("MRPC.tsv",)


class StsbProcessor(GlueProcessor):
    """STS-B: how alike are two sentences, from 0 to 5? Scored by correlations."""

    columns = examples_module.Columns(
        text="sentence1",
        text_b="sentence2",
        label="score",
        kind=label_kinds.REGRESSION,
        index=_INDEX,
    )
    labels = ()
    submitted_as = ("STS-B.tsv",)


class QqpProcessor(GlueProcessor):
    """QQP: are two questions of Quora the same? Scored by F1 and accuracy."""

    columns = examples_module.Columns(
        text="question1", text_b="question2", label="is_duplicate", index="id"
    )
    submitted_as = ("QQP.tsv",)

    def read_labelled(
        self, data_dir: str, part: str
    ) -> list[examples_module.InputExample]:
        """Returns the examples of one file, without those that GLUE itself broke.

        Some questions hold a line break, which tears their rows in two. GLUE's own
        baselines leave such rows out.
        """
        path = self.get_files(data_dir)[part]
        broken: list[str] = []
        rows = tables.read_table(path, self.columns.names(), broken_rows=broken)
        found = examples_module.examples_of(
            rows,
            self.columns,
            part,
            labels=self.get_labels(),
            first_row=1,
            broken_rows=self.broken_rows,
        )
        if broken:
            logger.warning(
                "%s %d rows of this kind are left out.", broken[0], len(broken)
            )
        return found


class MnliProcessor(GlueProcessor):
    """MNLI: does the first sentence imply the second, or contradict it?

    Scored by accuracy, on sentences of the training set's genres ("matched") and of
    others ("mismatched").
    """

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", label="gold_label", index=_INDEX
    )
    labels = ENTAILMENT_LABELS
    parts = _PARTS_OF_MNLI
    submitted_as = ("MNLI-m.tsv", "MNLI-mm.tsv")


class QnliProcessor(GlueProcessor):
    """QNLI: does a sentence hold the answer to a question? Scored by accuracy."""

    columns = examples_module.Columns(text="question", text_b="sentence", index=_INDEX)
    labels = ("entailment", "not_entailment")
    submitted_as = ("QNLI.tsv",)


class RteProcessor(GlueProcessor):
    """RTE: does the first sentence imply the second? Scored by accuracy."""

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", index=_INDEX
    )
    labels = ("entailment", "not_entailment")
    submitted_as = ("RTE.tsv",)


class WnliProcessor(GlueProcessor):
    """WNLI: is a sentence with its pronoun replaced implied? Scored by accuracy."""

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", index=_INDEX
    )
    submitted_as = ("WNLI.tsv",)


class AxProcessor(GlueProcessor):
    """AX, GLUE's diagnostic set, for a model that was trained on MNLI.

    diagnostic.tsv (or AX.tsv) is to be predicted; diagnostic-full.tsv has labels too.
    """

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", index=_INDEX
    )
    labels = ENTAILMENT_LABELS
    parts = _PARTS_OF_AX
    submitted_as = ("AX.tsv",)

    def get_train_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Raises ValueError: there is nothing to train on."""
        raise ValueError(
            "AX has nothing to train on; train with --task_name=MNLI, then give that "
            "run's --output_dir with --task_name=AX."
        )

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the paths of both files."""
        paths = super().get_files(data_dir)
        if not files.exists(paths["test"]):
            other = os.path.join(data_dir, self.submitted_as[0])
            paths["test"] = other if files.exists(other) else paths["test"]
        return paths

    def read_labelled(
        self, data_dir: str, part: str
    ) -> list[examples_module.InputExample]:
        """Returns the examples of diagnostic-full.tsv, whose columns are its own."""
        columns = examples_module.Columns(
            text="Premise", text_b="Hypothesis", label="Label", index=_INDEX
        )
        path = self.get_files(data_dir)[part]
        return examples_module.read_examples(
            path,
            columns,
            part,
            labels=self.get_labels(),
            broken_rows=self.broken_rows,
        )


PROCESSORS = {
    "cola": ColaProcessor,
    "mrpc": MrpcProcessor,
    "sst-2": Sst2Processor,
    "sts-b": StsbProcessor,
    "qqp": QqpProcessor,
    "mnli": MnliProcessor,
    "qnli": QnliProcessor,
    "rte": RteProcessor,
    "wnli": WnliProcessor,
    "ax": AxProcessor,
}
