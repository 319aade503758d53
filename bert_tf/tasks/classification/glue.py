"""The GLUE tasks, read from the files that GLUE distributes.

`parts` maps the sets of a task to file names. The names of sets for evaluation begin
with "dev", and those of sets to predict with "test".
"""

import logging
import os

from bert_tf import files
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module

logger = logging.getLogger(__name__)

# Of GLUE's files of CoLA, only test.tsv has a header.
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
# Columns of the texts in TensorFlow Datasets.
TFDS_TEXTS = {
    "glue/ax": ("premise", "hypothesis"),
    "glue/cola": ("sentence", None),
    "glue/mnli": ("premise", "hypothesis"),
    "glue/mrpc": ("sentence1", "sentence2"),
    "glue/qnli": ("question", "sentence"),
    "glue/qqp": ("question1", "question2"),
    "glue/rte": ("sentence1", "sentence2"),
    "glue/sst2": ("sentence", None),
    "glue/stsb": ("sentence1", "sentence2"),
    "glue/wnli": ("sentence1", "sentence2"),
}
# GLUE configurations whose names differ from those of --task_name.
TFDS_TASK_NAMES = {"sst2": "sst-2", "stsb": "sts-b"}
# In the order of the release's MnliProcessor and XnliProcessor.
ENTAILMENT_LABELS = ("contradiction", "entailment", "neutral")


class GlueProcessor(examples_module.DataProcessor):
    """Reads a task from tables. Subclasses set its columns, labels and files."""

    columns: examples_module.Columns = examples_module.Columns(index=_INDEX)
    labels: tuple[str, ...] = ("0", "1")
    parts = _PARTS
    # Names of the answer files that the GLUE server expects, one per test set.
    submitted_as: tuple[str, ...] = ()

    def get_submission_files(self) -> dict[str, str]:
        """Returns the names of the answer files that the GLUE server expects."""
        parts = [part for part in self.parts if part.startswith("test")]
        return dict(zip(parts, self.submitted_as, strict=True))

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the paths of the task's files."""
        return {part: os.path.join(data_dir, name) for part, name in self.parts.items()}

    def get_languages(self) -> list[str]:
        """Returns the code of English."""
        return ["en"]


class ColaProcessor(GlueProcessor):
    """CoLA: is a sentence acceptable English? Score: Matthews correlation."""

    columns = examples_module.Columns(text="sentence", index=_INDEX)
    header = _COLA_HEADER
    submitted_as = ("CoLA.tsv",)


class Sst2Processor(GlueProcessor):
    """SST-2: is a sentence of a film review positive? Score: accuracy."""

    columns = examples_module.Columns(text="sentence", index=_INDEX)
    submitted_as = ("SST-2.tsv",)


class MrpcProcessor(GlueProcessor):
    """MRPC: are two sentences paraphrases? Scores: F1 and accuracy."""

    columns = examples_module.Columns(
        text="#1 String", text_b="#2 String", label="Quality", index=_INDEX
    )
    submitted_as = ("MRPC.tsv",)


class StsbProcessor(GlueProcessor):
    """STS-B: how similar are two sentences, from 0 to 5? Scores: correlations."""

    columns = examples_module.Columns(
        text="sentence1",
        text_b="sentence2",
        label="score",
        kind=examples_module.REGRESSION,
        index=_INDEX,
    )
    labels = ()
    submitted_as = ("STS-B.tsv",)


class QqpProcessor(GlueProcessor):
    """QQP: are two Quora questions duplicates? Scores: F1 and accuracy."""

    columns = examples_module.Columns(
        text="question1", text_b="question2", label="is_duplicate", index="id"
    )
    submitted_as = ("QQP.tsv",)

    def read(self, data_dir: str, part: str) -> list[examples_module.InputExample]:
        """Returns the examples of one file, without the rows that are broken in GLUE.

        Some questions contain a line break, which splits their row in two. GLUE's own
        baselines also skip such rows.
        """
        if part == "test":
            return super().read(data_dir, part)
        path = self.get_files(data_dir)[part]
        broken: list[str] = []
        rows = tables.read_table(path, self.columns.names(), broken_rows=broken)
        examples = examples_module.examples_of(
            rows,
            self.columns,
            part,
            labels=self.get_labels(),
            first_row=1,
            broken_rows=self.broken_rows,
        )
        if broken:
            logger.warning(
                "%s Skipped %d rows with such errors.", broken[0], len(broken)
            )
        return examples


class MnliProcessor(GlueProcessor):
    """MNLI: does the first sentence imply or contradict the second? Score: accuracy.

    There is one set with the genres of the training set ("matched") and one with other
    genres ("mismatched").
    """

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", label="gold_label", index=_INDEX
    )
    labels = ENTAILMENT_LABELS
    parts = _PARTS_OF_MNLI
    submitted_as = ("MNLI-m.tsv", "MNLI-mm.tsv")


class QnliProcessor(GlueProcessor):
    """QNLI: does a sentence contain the answer to a question? Score: accuracy."""

    columns = examples_module.Columns(text="question", text_b="sentence", index=_INDEX)
    labels = ("entailment", "not_entailment")
    submitted_as = ("QNLI.tsv",)


class RteProcessor(GlueProcessor):
    """RTE: does the first sentence imply the second? Score: accuracy."""

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", index=_INDEX
    )
    labels = ("entailment", "not_entailment")
    submitted_as = ("RTE.tsv",)


class WnliProcessor(GlueProcessor):
    """WNLI: is the sentence with its pronoun replaced implied? Score: accuracy."""

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", index=_INDEX
    )
    submitted_as = ("WNLI.tsv",)


class AxProcessor(GlueProcessor):
    """AX: the diagnostic set of GLUE, for models trained on MNLI.

    diagnostic.tsv (or AX.tsv) is the set to predict. diagnostic-full.tsv has labels.
    """

    columns = examples_module.Columns(
        text="sentence1", text_b="sentence2", index=_INDEX
    )
    labels = ENTAILMENT_LABELS
    parts = _PARTS_OF_AX
    submitted_as = ("AX.tsv",)

    def get_train_examples(self, data_dir: str) -> list[examples_module.InputExample]:
        """Raises ValueError: AX has no training data."""
        raise ValueError(
            "AX has no training data; train with --task_name=MNLI, then use "
            "--task_name=AX with the --output_dir of that run."
        )

    def get_files(self, data_dir: str) -> dict[str, str]:
        """Returns the paths of both files."""
        paths = super().get_files(data_dir)
        if not files.exists(paths["test"]):
            alternative = os.path.join(data_dir, self.submitted_as[0])
            if files.exists(alternative):
                paths["test"] = alternative
        return paths

    def read(self, data_dir: str, part: str) -> list[examples_module.InputExample]:
        """Returns the examples of a file. diagnostic-full.tsv has its own columns."""
        if part != "dev":
            return super().read(data_dir, part)
        return examples_module.read_examples(
            self.get_files(data_dir)[part],
            examples_module.Columns(
                text="Premise", text_b="Hypothesis", label="Label", index=_INDEX
            ),
            part,
            labels=self.get_labels(),
            broken_rows=self.broken_rows,
        )


PROCESSORS: dict[str, type[GlueProcessor]] = {
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
