"""The GLUE table of the paper, from runs or from answer files."""

import dataclasses
import json
import os
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import locks
from bert_tf.data import tables
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import glue
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import scores
from bert_tf.training import result_files
from bert_tf.training import run_folder

# A folder with both files is a finished run.
_FILES_OF_RUN = ("task.json", "eval_results.txt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column of Table 1 of the paper. `report` prints it as a line."""

    name: str  # Of the paper and the GLUE server. Answers are in NAME.tsv.
    task_name: str  # A key of `glue.PROCESSORS`.
    score: str  # The score that the paper reports, a key of `scores.SCORES`.
    part: str = "dev"  # The set.
    folder: str  # The task's folder in the GLUE data.
    is_in_average: bool = True

    @property
    def key(self) -> str:
        """The key of the score in eval_results.txt."""
        return f"eval_{self.score}{self.part.removeprefix('dev')}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """A score and its source."""

    value: float  # The mean if there are several runs.
    source: str  # Folder of a run, or path of an answer file.


def _column(name: str, score: str, **values: Any) -> Column:
    task = {"task_name": name.lower(), "folder": name} | values
    return Column(name=name, score=score, **task)


# Table 1 of the paper, in its order. The average omits WNLI: each system submitted so
# far had done worse than predicting the majority class (section 4.1).
COLUMNS = (
    _column("MNLI-m", "accuracy", task_name="mnli", folder="MNLI"),
    _column(
        "MNLI-mm", "accuracy", task_name="mnli", folder="MNLI", part="dev_mismatched"
    ),
    _column("QQP", "f1"),
    _column("QNLI", "accuracy"),
    _column("SST-2", "accuracy"),
    _column("CoLA", "matthews"),
    _column("STS-B", "spearman"),
    _column("MRPC", "f1"),
    _column("RTE", "accuracy"),
    _column("WNLI", "accuracy", is_in_average=False),
)


def run(options: classification_options.EvaluateGlueOptions) -> str:
    """Returns the table, and writes the JSON file if the options name one.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: there are no scores, a task has two sources, or an answer file does
            not match its development set.
    """
    found = found_in(options.input_dir, options.data_dir)
    if options.output_file is not None:
        values: dict[str, Any] = {name: item.value for name, item in found.items()}
        values["average"], values["missing"] = average(found), missing(found)
        with (
            locks.output_file(options.output_file),
            files.complete_or_absent(options.output_file) as file,
        ):
            file.write(json.dumps(values, indent=2) + "\n")
    return report(found)


def found_in(input_dir: str, data_dir: str | None = None) -> dict[str, Found]:
    """Returns the scores of the runs and answer files in a folder, by column.

    Args:
        input_dir: see `EvaluateGlueOptions`.
        data_dir: see `EvaluateGlueOptions`. None: answer files are ignored.

    Raises:
        OSError, ValueError: see `run`.
    """
    runs = list(_runs(input_dir))
    found = {}
    for column in COLUMNS:
        values = {
            source: results[column.key]
            for source, task_name, results in runs
            if column.task_name == task_name and column.key in results
        }
        if values:
            found[column.name] = _of_runs(values)
    for column in COLUMNS:
        path = os.path.join(input_dir, f"{column.name}.tsv")
        if data_dir is not None and files.exists(path):
            if column.name in found:
                raise ValueError(
                    f"{column.name} has two sources, {found[column.name].source} and "
                    f"{path}; remove one of them."
                )
            value = _score_of_file(path, column, data_dir)
            found[column.name] = Found(value=value, source=path)
    if not found:
        raise ValueError(
            f"{input_dir} contains no evaluated run of a GLUE task (--do_eval), and no "
            "answer file such as CoLA.tsv to score with --data_dir."
        )
    return {
        column.name: found[column.name] for column in COLUMNS if column.name in found
    }


def average(found: dict[str, Found]) -> float | None:
    """Returns the paper's average, without WNLI; None if a column is missing."""
    if missing(found):
        return None
    return float(np.mean([found[c.name].value for c in COLUMNS if c.is_in_average]))


def missing(found: dict[str, Found]) -> list[str]:
    """Returns the missing columns of the average."""
    return [c.name for c in COLUMNS if c.is_in_average and c.name not in found]


def report(found: dict[str, Found]) -> str:
    """Returns the table as text, with scores in percent as in the paper."""
    lines = [f"{'task':8}{'score':10}{'value':>6}  source"]
    for column in COLUMNS:
        if column.name in found:
            item = found[column.name]
            note = "" if column.is_in_average else " (not in the average)"
            lines.append(
                f"{column.name:8}{column.score:10}{100 * item.value:6.1f}  "
                f"{item.source}{note}"
            )
        else:
            lines.append(f"{column.name:8}{column.score:10}{'-':>6}  missing")
    mean = average(found)
    if mean is not None:
        lines.append(f"Average as in the paper, without WNLI: {100 * mean:.1f}")
        return "\n".join(lines)
    present = [
        found[c.name].value for c in COLUMNS if c.is_in_average and c.name in found
    ]
    shown = f"{100 * np.mean(present):.1f}" if present else "-"
    lines.append(
        f"Average as in the paper: unknown (missing: {', '.join(missing(found))}). "
        f"Mean of the {len(present)} present: {shown}"
    )
    return "\n".join(lines)


def _of_runs(values):
    """Returns the mean score of the runs of one task, given {folder: score}."""
    mean = float(np.mean(list(values.values())))
    if len(values) == 1:
        return Found(value=mean, source=next(iter(values)))
    each = ", ".join(f"{folder} {100 * x:.1f}" for folder, x in values.items())
    return Found(value=mean, source=f"mean of {len(values)} runs: {each}")


def _runs(input_dir):
    """Yields (folder, task name, scores) of each run in a folder."""
    folders = [os.path.join(input_dir, name) for name in files.list_folder(input_dir)]
    for folder in [input_dir, *folders]:
        paths = [os.path.join(folder, name) for name in _FILES_OF_RUN]
        if not files.is_folder(folder) or not all(map(files.exists, paths)):
            continue
        task_name = files.read_json(paths[0]).get("task_name")
        pairs = (line.split(" = ") for line in files.read_lines(paths[1]))
        results = {name: float(value) for name, value in pairs}
        _check_data(folder, task_name, results)
        yield folder, task_name, results


def _check_data(folder, task_name, results):
    """Checks that the results of a run are those of its task's development sets."""
    columns = [column for column in COLUMNS if column.task_name == task_name]
    entry = result_files.own_entry(folder, run_folder.EVAL_RESULTS_FILE) or {}
    evaluated = entry.get("name")
    is_of_task = evaluated in (None, task_name) or evaluated.startswith("glue/")
    lacking = [column.key for column in columns if column.key not in results]
    if columns and (lacking or not is_of_task):
        found = f"no {lacking[0]}" if lacking else f"the scores on {evaluated}"
        raise ValueError(
            f"{folder} was trained on {task_name}, but its "
            f"{run_folder.EVAL_RESULTS_FILE} has {found}; evaluate the run on the "
            f"development data of its task again (--task_name={task_name} --do_eval)."
        )


def _score_of_file(path, column, data_dir):
    """Returns the score of an answer file on the development set."""
    processor = glue.PROCESSORS[column.task_name]()
    folder = os.path.join(data_dir, column.folder)
    examples = processor.read(folder, column.part)
    answer_of = {
        row.cells["index"]: row
        for row in tables.read_table(path, ["index", "prediction"])
    }
    labels = processor.get_labels()
    kind = processor.columns.kind
    truth, predicted = [], []
    for number, example in enumerate(examples):
        index = str(number) if example.index is None else example.index
        if index not in answer_of:
            raise ValueError(
                f"{path} has no answer with the index {index}; expected one answer for "
                f"each of the {len(examples)} examples in {folder}."
            )
        row = answer_of[index]
        try:
            examples_module.check_label(
                row.cells["prediction"], labels, kind=kind, separator=None
            )
        except ValueError as error:
            raise ValueError(f"{row.place}: {error}") from None
        truth.append(_value(example.label, labels))
        predicted.append(_value(row.cells["prediction"], labels))
    return scores.SCORES[column.score](np.array(truth), np.array(predicted))


def _value(label, labels):
    return labels.index(label) if labels else examples_module.number_in(label)
