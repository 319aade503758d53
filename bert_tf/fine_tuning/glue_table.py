"""evaluate_glue: the scores of GLUE runs in one table, as in Table 1 of the paper."""

import dataclasses
import os

import numpy as np

from bert_tf import files
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.training import run_file
from bert_tf.training import run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column of Table 1 of the paper. `report` prints it as a line."""

    name: str  # Of the paper and the GLUE server.
    task_name: str  # The --task_name of its runs, in lower case.
    score: str  # The score that the paper reports.
    set_name: str = ""  # Of the score: empty, or that of MNLI's second set.

    @property
    def key(self) -> str:
        """The key of the score in eval_results.txt."""
        return f"eval_{self.score}{self.set_name}"


# Table 1 of the paper, in its order, and WNLI. The average omits WNLI: each system
# submitted so far had done worse than predicting the majority class (section 4.1).
GLUE_SCORES = (
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
IN_AVERAGE = tuple(column.name for column in GLUE_SCORES[:-1])


def glue_table(options: fine_tuning_options.EvaluateGlueOptions) -> str:
    """Returns the scores of the runs in a folder in percent, as the paper does.

    Raises:
        OSError: a file cannot be read.
        ValueError: there are no runs, or scores of other data.
    """
    scores = _read_scores(options.input_dir)
    means = {name: float(np.mean([*s.values()])) for name, s in scores.items()}
    missing = [name for name in IN_AVERAGE if name not in means]
    present = [means[name] for name in IN_AVERAGE if name in means]
    mean = float(np.mean(present)) if present else float("nan")
    lines = [f"{'task':8}{'score':10}{'value':>6}  source"]
    for column in GLUE_SCORES:
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


def _read_scores(input_dir):
    """Returns the scores of the runs in a folder, by column and folder of the run."""
    scores: dict[str, dict[str, float]] = {}
    for name in ["", *files.list_folder(input_dir)]:
        run_dir = os.path.join(input_dir, name) if name else input_dir
        task_file = os.path.join(run_dir, "task.json")
        results = run_folder.RunFolder(run_dir).read_eval_results()
        if not results or not files.exists(task_file):
            continue
        task_name = files.read_json(task_file).get("task_name")
        columns = [column for column in GLUE_SCORES if column.task_name == task_name]
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
    recorded = run_file.read_run(run_dir).get("results", {})
    entry = recorded.get(run_folder.EVAL_RESULTS_FILE, {})
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
