"""The GLUE tasks, read from the files that GLUE distributes, and the paper's table.

`parts` maps the sets of a task to file names. The names of sets for evaluation begin
with "dev", and those of sets to predict with "test".
"""

import dataclasses
import logging
import os

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import options as classification_options
from bert_tf.training import result_files
from bert_tf.training import run_folder

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
        kind=checkpoint_heads.REGRESSION,
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column of Table 1 of the paper. `report` prints it as a line."""

    name: str  # Of the paper and the GLUE server.
    task_name: str  # A key of `PROCESSORS`.
    score: str  # The score that the paper reports.
    set_name: str = ""  # Of the score: empty, or that of MNLI's second set.

    @property
    def key(self) -> str:
        """The key of the score in eval_results.txt."""
        return f"eval_{self.score}{self.set_name}"


# Table 1 of the paper, in its order, and WNLI. The average omits WNLI: each system
# submitted so far had done worse than predicting the majority class (section 4.1).
COLUMNS = (
    Column(name="MNLI-m", task_name="mnli", score="accuracy"),
    Column(name="MNLI-mm", task_name="mnli", score="accuracy", set_name="_mismatched"),
    Column(name="QQP", task_name="qqp", score="f1"),
    Column(name="QNLI", task_name="qnli", score="accuracy"),
    Column(name="SST-2", task_name="sst-2", score="accuracy"),
    Column(name="CoLA", task_name="cola", score="matthews"),
    Column(name="STS-B", task_name="sts-b", score="spearman"),
    Column(name="MRPC", task_name="mrpc", score="f1"),
    Column(name="RTE", task_name="rte", score="accuracy"),
    Column(name="WNLI", task_name="wnli", score="accuracy"),
)
IN_AVERAGE = tuple(column.name for column in COLUMNS[:-1])


def table(options: classification_options.EvaluateGlueOptions) -> str:
    """Returns the scores of the runs in a folder in percent, as the paper does.

    Raises:
        OSError: a file cannot be read.
        ValueError: there are no runs, or scores of other data.
    """
    scores = read_scores(options.input_dir)
    means = {name: float(np.mean([*s.values()])) for name, s in scores.items()}
    missing = [name for name in IN_AVERAGE if name not in means]
    present = [means[name] for name in IN_AVERAGE if name in means]
    mean = float(np.mean(present)) if present else float("nan")
    lines = [f"{'task':8}{'score':10}{'value':>6}  source"]
    for column in COLUMNS:
        value = f"{100 * means[column.name]:.1f}" if column.name in means else "-"
        source = _source(scores.get(column.name, {}))
        note = "" if column.name in IN_AVERAGE else " (not in the average)"
        lines.append(f"{column.name:8}{column.score:10}{value:>6}  {source}{note}")
    average = f"Average as in the paper, without WNLI: {100 * mean:.1f}"
    if missing:
        average = (
            f"Average as in the paper: unknown (missing: {', '.join(missing)}). Mean "
            f"of the {len(present)} present: {100 * mean:.1f}"
        )
    return "\n".join([*lines, average])


def read_scores(input_dir: str) -> dict[str, dict[str, float]]:
    """Returns the scores of the runs in a folder, by column and folder of the run.

    Raises:
        OSError, ValueError: see `table`.
    """
    scores: dict[str, dict[str, float]] = {}
    for name in ["", *files.list_folder(input_dir)]:
        run_dir = os.path.join(input_dir, name) if name else input_dir
        task_file = os.path.join(run_dir, "task.json")
        results = run_folder.RunFolder(run_dir).read_eval_results()
        if not results or not files.exists(task_file):
            continue
        task_name = files.read_json(task_file).get("task_name")
        columns = [column for column in COLUMNS if column.task_name == task_name]
        for column in columns:
            if column.set_name and column.key not in results:
                continue  # A split of a named data set is one of MNLI's two sets.
            _check_data(run_dir, column, results)
            scores.setdefault(column.name, {})[run_dir] = results[column.key]
    if not scores:
        raise ValueError(
            f"{input_dir} contains no evaluated run of a GLUE task (--do_eval)."
        )
    return scores


def _source(values):
    """Returns where the scores of a column are from, given {folder: score}."""
    if len(values) < 2:
        return next(iter(values), "missing")
    each = ", ".join(f"{folder} {100 * x:.1f}" for folder, x in values.items())
    return f"mean of {len(values)} runs: {each}"


def _check_data(run_dir, column, results):
    """Checks that the results of a run are those of its task's development sets."""
    entry = result_files.own_entry(run_dir, run_folder.EVAL_RESULTS_FILE) or {}
    data, task_name = entry.get("name"), column.task_name
    is_of_task = data in (None, task_name) or data.startswith(("glue-", "glue/"))
    if column.key in results and is_of_task:
        return
    problem = f"the scores on {data}" if column.key in results else f"no {column.key}"
    raise ValueError(
        f"{run_dir} was trained on {task_name}, but its "
        f"{run_folder.EVAL_RESULTS_FILE} has {problem}; evaluate the run on the "
        f"development data of its task again (--task_name={task_name} --do_eval)."
    )
