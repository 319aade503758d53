"""Searches: several runs with other seeds or settings. Keeps the best run.

The seed decides the head's initial weights, dropout and the order of the examples. On
small data sets these matter: BERT-Large sometimes does not learn at all. The paper
therefore runs several restarts and selects the best on the development set (section
4.1), and searches over learning rates, batch sizes and numbers of epochs (appendix
A.3). The best score on the development set is optimistic; report test-set scores.

Each run has its own folder below `trials/`. Its `trial.json` records that it is
finished, so a killed search continues with the next run. Only the best run so far
has weights, which are copied to the output_dir at the end. Runs are compared by the
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
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import run_report
from bert_tf.training import run_file
from bert_tf.training import run_folder
from bert_tf.training import stopping

logger = logging.getLogger(__name__)

RECORD_FILE = "trial.json"
SEARCH_FILE = "search.json"
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
        A report: one line per trial, and the scores of the best one.

    Raises:
        ValueError: the folder contains a single run or another search, or the folder
            of a trial contains a run with other settings or data.
        OSError: a file cannot be read or written.
    """
    trials = options.trials()
    _check_folder(options.output_dir, [trial.name for trial in trials])
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
    folder = run_folder.RunFolder(options.output_dir)
    run_report.rewrite_scores(folder, results[best.name])
    run_report.write_report(folder)
    return _report(results, best.name)


def _check_folder(output_dir, names):
    """Checks that the folder has this search or none, and records the trials."""
    if (recorded := _read_search(output_dir)) is not None:
        if recorded["trials"] != names:
            raise ValueError(
                f"{output_dir} contains a search of other values: "
                f"{'; '.join(recorded['trials']):.200}. Choose another --output_dir."
            )
        return
    if files.exists(os.path.join(output_dir, _CHECKPOINT)):
        raise ValueError(
            f"{output_dir} contains a single run, which the best run of this search "
            "would replace; choose another --output_dir."
        )
    path = _search_path(output_dir)
    files.make_folders(os.path.dirname(path))
    companion_files.write_json(path, {"trials": names, "kept": None})


def _search_path(output_dir):
    return os.path.join(output_dir, fine_tuning_options.TRIALS_FOLDER, SEARCH_FILE)


def _read_search(output_dir):
    """Returns the names of the trials, and that of the kept one, or None."""
    shape = {"trials": [str], "kept": str | None}
    return _read(_search_path(output_dir), shape, advice="choose another --output_dir")


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
    path = os.path.join(trial.options.output_dir, RECORD_FILE)
    record = _read(path, _RECORD_SHAPE, advice="remove it to repeat the run")
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


def _remove_weights(run_dir):
    for folder in (run_dir, os.path.join(run_dir, "best")):
        for name in files.list_folder(folder) if files.is_folder(folder) else ():
            if name == _CHECKPOINT or name.startswith(_WEIGHTS):
                files.remove(os.path.join(folder, name))


def _keep(output_dir, best):
    """Copies the best trial to the output_dir, unless it was kept already."""
    folder, search = best.options.output_dir, _read_search(output_dir)
    if not files.exists(os.path.join(folder, _CHECKPOINT)):
        is_there = files.exists(os.path.join(output_dir, _CHECKPOINT))
        if search["kept"] == best.name and is_there:
            return
        raise ValueError(
            f"{folder} is now the best run, but its weights were removed; remove its "
            f"{RECORD_FILE} to train it again."
        )
    # In this order, the output_dir never has other weights than those of `kept`.
    _remove_weights(output_dir)
    companion_files.write_json(_search_path(output_dir), search | {"kept": best.name})
    _copy(folder, output_dir)
    _remove_weights(folder)


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


def _scores(results):
    return {name: results[name] for name in sorted(results) if name not in _COUNTS}


def _write_table(options, trials, results):
    """Writes the results so far, one row per trial."""
    lines = [[*trials[0].changed, *_scores(results[trials[0].name])]]
    for trial in trials[: len(results)]:
        values = _scores(results[trial.name]).values()
        lines.append([*trial.changed.values(), *values])
    with files.complete_or_absent(os.path.join(options.output_dir, SWEEP_FILE)) as file:
        file.writelines("\t".join(map(str, line)) + "\n" for line in lines)


def _report(results, best):
    metric = stopping.metric_of(results[best], BEST_METRICS)
    lines = [
        f"{name}: {metric} = {run_folder.format_score(scores[metric])}"
        for name, scores in results.items()
    ]
    lines.append(f"Kept the best of {len(results)} runs: {best}.")
    return "\n".join([*lines, *run_folder.score_lines(_scores(results[best]))])


def _read(path, shape, *, advice):
    if not files.exists(path):
        return None
    return files.read_json(path, advice=advice, shape=shape)
