"""Searches: several runs with other seeds or settings. Keeps the best run.

The seed decides the head's initial weights, dropout and the order of the examples. On
small data sets these matter: BERT-Large sometimes does not learn at all. The paper
therefore runs several restarts and selects the best on the development set (section
4.1), and searches over learning rates, batch sizes and numbers of epochs (appendix
A.3). The best score on the development set is optimistic; report test-set scores.

Each run has its own folder below `trials/`. Its `trial.json` records that it is
finished, so a killed search continues with the next run. Only the best run so far
has weights, which are moved to the output_dir at the end. Runs are compared by the
scores of their last checkpoints. The folder `best/` of a run is copied, not compared.
"""

import gc
import logging
import os
import shutil
from collections.abc import Callable
from collections.abc import Mapping

from bert_tf import files
from bert_tf import json_values
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import run_report
from bert_tf.training import run_file
from bert_tf.training import run_folder
from bert_tf.training import stopping

logger = logging.getLogger(__name__)

RECORD_FILE = "trial.json"
KEPT_FILE = "kept.json"
SWEEP_FILE = "sweep.tsv"
# The first of these scores that a task has is the one that papers report. It selects
# the checkpoint in best/ and the best run of a search.
BEST_METRICS = (
    "eval_mrr",
    "eval_micro_f1",
    "eval_f1",
    "eval_matthews",
    "eval_spearman",
    "eval_accuracy",
    "eval_loss",
)
_CHECKPOINT = "checkpoint"
_WEIGHTS = "model.ckpt-"
# See `json_values.unexpected`.
_RECORD_SHAPE = {
    "settings": run_file.FLAGS_SHAPE,
    "results": {str: int | float | None},
}
# Beginnings of the names of result files.
_RESULTS = {
    "eval_classes",
    "eval_results",
    "predictions",
    "test_results",
    "wrong_examples",
}
# Flags that a resumed run may change, but not a finished one: the contents of these
# files are not compared here, and evaluations decide whether a run has a best/ folder.
_FIXED = ("bert_config_file", "vocab_file", "eval_every_steps")
# Results that are not scores.
_COUNTS = ("global_step", "loss")


def run(
    options: fine_tuning_options.TrialOptions,
    run_one: Callable[..., Mapping[str, float]],
    *,
    data_sets: Callable[..., Mapping[str, run_file.DataSet]],
) -> str:
    """Runs all unfinished trials, and keeps the best one.

    Args:
        options: of the whole search.
        run_one: trains and evaluates one run, given its options. Returns its scores.
        data_sets: returns the data that the options of one run name, by set.

    Returns:
        A report: one line per trial, the best trial, and the mean and standard
        deviation over its seeds.

    Raises:
        ValueError: the folder contains a single run, or the folder of a trial contains
            a run with other settings or data.
        OSError: a file cannot be read or written.
    """
    trials = options.trials()
    _check_no_single_run(options.output_dir)
    for name in ("", fine_tuning_options.TRIALS_FOLDER):
        files.remove_leftovers(os.path.join(options.output_dir, name))
    results: dict[str, Mapping[str, float]] = {}
    known: dict[run_file.DataSet, run_file.DataSet] = {}
    # The first trial is the best one if all are equal or NaN.
    selection, best = stopping.Selection(BEST_METRICS), trials[0]
    for number, trial in enumerate(trials, start=1):
        scores = _finished(trial)
        state = "is finished" if scores else "starts"
        logger.info("Run %d of %d (%s) %s.", number, len(trials), trial.name, state)
        results[trial.name] = scores or _run(trial, run_one)
        # Also after a run, because a file may have changed since the run before it.
        _check_data(trial, data_sets(trial.options), known)
        if selection.is_best(results[trial.name]):
            best = trial
        for one in trials[:number]:
            if one is not best:
                _remove_weights(one.options.output_dir)
        _write_table(options, trials, results)
    _keep(options.output_dir, best)
    seeds = [t for t in trials if _without_seed(t) == _without_seed(best)]
    spread = _spread([results[trial.name] for trial in seeds])
    folder = run_folder.RunFolder(options.output_dir)
    model_card.rewrite_scores(folder, spread)
    run_report.write(folder)
    metric = stopping.metric_of(results[best.name], BEST_METRICS)
    return _report(metric, results, best, spread)


def _check_no_single_run(output_dir):
    """Checks that the search would not replace a run trained without a search."""
    kept = os.path.join(output_dir, fine_tuning_options.TRIALS_FOLDER, KEPT_FILE)
    is_run = files.exists(os.path.join(output_dir, _CHECKPOINT))
    if is_run and not files.exists(kept):
        raise ValueError(
            f"{output_dir} contains a single run, which the best run of this search "
            "would replace; choose another --output_dir."
        )


def _run(trial, run_one):
    with run_folder.locked(trial.options):
        results = dict(run_one(trial.options))
    gc.collect()  # Frees the model and its optimizer before the next run starts.
    settings = run_file.flags_of(trial.options)
    record = json_values.with_null({"settings": settings, "results": results})
    path = os.path.join(trial.options.output_dir, RECORD_FILE)
    companion_files.write_json(path, record)
    return results


def _finished(trial):
    """Returns the results of a finished trial, or None."""
    record = _read(os.path.join(trial.options.output_dir, RECORD_FILE), _RECORD_SHAPE)
    if record is None:
        return None
    flags = run_file.flags_of(trial.options)
    declared = options_module.declarations(type(trial.options))
    free = {one.name for one in declared if one.on_resume == options_module.FREE}
    for name, pair in run_file.changed_values(record["settings"], flags).items():
        if name not in free or name in _FIXED:
            raise ValueError(
                f"{trial.options.output_dir} contains a finished run with {name} "
                f"{pair[0]!r}, but this one has {pair[1]!r}; choose another "
                "--output_dir."
            )
    return {name: json_values.nan_if_null(v) for name, v in record["results"].items()}


def _check_data(trial, data_sets, known):
    """Checks that a finished trial was trained and evaluated on the search's data.

    `known` are the data sets whose checksums are computed already, by themselves.
    """
    folder = trial.options.output_dir
    run_record = run_file.read_run(folder)
    evaluated = run_record.get("results", {}).get(run_folder.EVAL_RESULTS_FILE)
    for part, kind, recorded in (
        ("train", "training data", run_record.get("training_data")),
        ("dev", "evaluation data", evaluated),
    ):
        data_set = data_sets.get(part)
        data_set = known.setdefault(data_set, data_set)
        if difference := run_file.data_difference(recorded, data_set):
            raise ValueError(
                f"{folder} contains a finished run with {kind} {difference[0]!r}, but "
                f"this one has {difference[1]!r}; choose another --output_dir."
            )


def _without_seed(trial):
    return {name: v for name, v in trial.changed.items() if name != "random_seed"}


def _remove_weights(run_dir):
    for folder in (run_dir, os.path.join(run_dir, "best")):
        for name in files.list_folder(folder) if files.is_folder(folder) else ():
            if name == _CHECKPOINT or name.startswith(_WEIGHTS):
                files.remove(os.path.join(folder, name))


def _keep(output_dir, best):
    """Copies the files of the best trial to the output_dir, its weights last."""
    kept_path = os.path.join(output_dir, fine_tuning_options.TRIALS_FOLDER, KEPT_FILE)
    if _read(kept_path, {"kept": str | None}) == {"kept": best.name}:
        return
    folder = best.options.output_dir
    if not files.exists(os.path.join(folder, _CHECKPOINT)):
        raise ValueError(
            f"{folder} is now the best run, but its weights were removed when another "
            f"run was better; remove its {RECORD_FILE} to train it again."
        )
    # Marks the output_dir as that of a search, also if the process is killed now.
    companion_files.write_json(kept_path, {"kept": None})
    _remove_weights(output_dir)
    _remove_results(output_dir)
    _copy(folder, output_dir)
    companion_files.write_json(kept_path, {"kept": best.name})
    _remove_weights(folder)


def _remove_results(folder):
    """Removes the scores and predictions of the run that was the best before."""
    written = run_file.read_run(folder).get("results", {})
    # Predictions also have other forms, and the name of a data set may follow a name.
    roots = {os.path.splitext(name)[0] for name in written} | _RESULTS
    for name in files.list_folder(folder):
        root = os.path.splitext(name)[0]
        if root in roots or root.partition("-")[0] in _RESULTS:
            files.remove(os.path.join(folder, name))


def _copy(source, target):
    files.make_folders(target)
    names = files.list_folder(source)
    # The file `checkpoint` commits the run, so it is copied last.
    for name in sorted(names, key=lambda name: (name == _CHECKPOINT, name)):
        path = os.path.join(source, name)
        if files.is_folder(path):
            _copy(path, os.path.join(target, name))
        elif name != RECORD_FILE and not name.startswith("."):
            copy = os.path.join(target, name)
            with (
                files.open_file(path, "rb") as read,
                files.complete_or_absent(copy, "wb") as written,
            ):
                shutil.copyfileobj(read, written, 1 << 24)


def _spread(results):
    """Returns the values of each score, one per restart."""
    names = [name for name in results[0] if name not in _COUNTS]
    return {name: tuple(scores[name] for scores in results) for name in names}


def _write_table(options, trials, results):
    """Writes the results so far, one row per trial."""
    scores = sorted(_spread(list(results.values())))
    lines = [[*trials[0].changed, *scores]]
    for trial in trials[: len(results)]:
        values = results[trial.name]
        lines.append([*trial.changed.values(), *(values[name] for name in scores)])
    with files.complete_or_absent(os.path.join(options.output_dir, SWEEP_FILE)) as file:
        file.writelines("\t".join(map(str, line)) + "\n" for line in lines)


def _report(metric, results, best, spread):
    lines = [
        f"{name}: {metric} = {run_folder.format_score(scores[metric])}"
        for name, scores in results.items()
    ]
    lines.append(f"Kept the best of {len(results)} runs: {best.name}.")
    for name, values in sorted(spread.items()):
        lines.append(f"{name} = {model_card.with_spread(values)}")
    return "\n".join(lines)


def _read(path, shape):
    if not files.exists(path):
        return None
    return files.read_json(path, advice="remove it to repeat the run", shape=shape)
