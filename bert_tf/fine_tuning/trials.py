"""Searches: restarts with several seeds, and sweeps over settings. Keeps the best run.

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
import json
import logging
import os
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping

import numpy as np

from bert_tf import files
from bert_tf import json_values
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import trial_inputs
from bert_tf.fine_tuning import trial_options
from bert_tf.training import result_files
from bert_tf.training import run_folder
from bert_tf.training import run_settings
from bert_tf.training import stopping

logger = logging.getLogger(__name__)

RECORD_FILE = "trial.json"
KEPT_FILE = "kept.json"
RESTARTS_FILE = "restarts.tsv"
SWEEP_FILE = "sweep.tsv"
_CHECKPOINT = "checkpoint"
_WEIGHTS = "model.ckpt-"
# See `json_values.unexpected`.
_RECORD_SHAPE = {
    "settings": result_files.FLAGS_SHAPE,
    "inputs?": {str: str},
    "results": {str: int | float | None},
}
# Results that are not scores.
_COUNTS = ("global_step", "loss")
# Options that select a run do not change the runs themselves.
_WITHOUT_EFFECT = (
    *run_settings.WITHOUT_EFFECT,
    "best_metric",
    "do_predict",
    "num_restarts",
    "predict_batch_size",
    "predict_file",
    "sweep",
)


def run(
    options: trial_options.TrialOptions,
    run_one: Callable[..., Mapping[str, float]],
    *,
    data_sets: Callable[..., Mapping[str, result_files.DataSet]],
    more_results: Mapping[str, Collection[str]] | None = None,
) -> str:
    """Runs all unfinished trials, and keeps the best one.

    Args:
        options: of the whole search.
        run_one: trains and evaluates one run, given its options. Returns its scores.
        data_sets: returns the data that the options of one run name, by set.
        more_results: names of the result files that belong to a main one, by its name;
            see `result_files.suffix_of`.

    Returns:
        A report: one line per trial, the best trial, and the mean and standard
        deviation over restarts.

    Raises:
        ValueError: the folder contains a single run, the folder of a trial contains a
            run with other settings or data, or there is no score
            `options.best_metric`.
        OSError: a file cannot be read or written.
    """
    trials = options.trials()
    _check_no_single_run(options.output_dir)
    for name in ("", trial_options.FOLDER):
        files.remove_leftovers_in(os.path.join(options.output_dir, name))
    results: dict[str, Mapping[str, float]] = {}
    known: dict[result_files.DataSet, result_files.DataSet] = {}
    for number, trial in enumerate(trials, start=1):
        inputs = trial_inputs.checksums(trial.options, known)
        found = _finished(trial, inputs)
        state = "is finished" if found else "starts"
        logger.info("Run %d of %d (%s) %s.", number, len(trials), trial.name, state)
        results[trial.name] = found or _run(trial, run_one, inputs)
        _check_same_scores(trial, results)
        # Also after a run, because a file may have changed since the run before it.
        _check_data(trial, data_sets(trial.options), known)
        best = _best(options.best_metric, results)
        _drop_other_weights(best, options.output_dir, results)
        _write_table(options, trials, results)
    [best] = [trial for trial in trials if trial.name == best]

    def train_again():
        _run(best, run_one, trial_inputs.checksums(best.options, known))

    _keep(options.output_dir, best, train_again, more_results or {})
    siblings = [t for t in trials if _settings(t) == _settings(best)]
    spread = _spread([results[trial.name] for trial in siblings])
    folder = run_folder.RunFolder(options.output_dir)
    model_card.rewrite_scores(folder, spread)
    run_report.write(folder)
    return _report(options, results, best, spread)


def _check_no_single_run(output_dir):
    """Checks that the search would not replace a run trained without a search."""
    kept = os.path.join(output_dir, trial_options.FOLDER, KEPT_FILE)
    is_run = files.exists(os.path.join(output_dir, _CHECKPOINT))
    if is_run and not files.exists(kept):
        raise ValueError(
            f"{output_dir} contains a single run, which the best run of this search "
            "would replace; choose another --output_dir."
        )


def _run(trial, run_one, inputs):
    with run_folder.locked(trial.options):
        found = dict(run_one(trial.options))
    gc.collect()  # Frees the model and its optimizer before the next run starts.
    record = {
        "settings": _effective(trial.options),
        "inputs": inputs,
        "results": found,
    }
    _write_json(os.path.join(trial.options.output_dir, RECORD_FILE), record)
    return found


def _finished(trial, inputs):
    """Returns the results of a finished trial, or None.

    Args:
        trial: any trial.
        inputs: returned by `trial_inputs.checksums`.
    """
    record = _read(os.path.join(trial.options.output_dir, RECORD_FILE), _RECORD_SHAPE)
    if record is None:
        return None
    found = run_settings.changed_flags(record["settings"], trial.options)
    for name, (before, now) in found.items():
        if name not in _WITHOUT_EFFECT:
            raise ValueError(
                f"{trial.options.output_dir} contains a finished run with {name} "
                f"{before!r}, but this one has {now!r}; choose another --output_dir."
            )
    recorded = record.get("inputs", {})  # Earlier versions did not record them.
    for name in sorted(recorded.keys() & inputs.keys()):
        if recorded[name] != inputs[name]:
            raise ValueError(
                f"{trial.options.output_dir} contains a finished run with another "
                f"{name} of this name: the content of {getattr(trial.options, name)} "
                "differs; choose another --output_dir."
            )
    return {name: json_values.nan_if_null(v) for name, v in record["results"].items()}


def _check_same_scores(trial, results):
    """Checks that a trial has the scores that the trials before it have."""
    expected, found = next(iter(results.values())).keys(), results[trial.name].keys()
    for name in sorted(expected ^ found):
        raise ValueError(
            f"{os.path.join(trial.options.output_dir, RECORD_FILE)} has "
            f"{'no' if name in expected else 'the'} score {name}, unlike the runs "
            "before it; remove it to repeat the run."
        )


def _check_data(trial, data_sets, known):
    """Checks that a finished trial was trained and evaluated on the search's data.

    Args:
        trial: a finished trial. What earlier versions did not record is not compared.
        data_sets: the data that its options name, by set.
        known: data sets whose checksums are computed already, by themselves.
    """
    folder = trial.options.output_dir
    run_record = result_files.read_run(folder)
    evaluated = result_files.own_entry(folder, run_folder.EVAL_RESULTS_FILE)
    for part, kind, recorded in (
        ("train", "training data", run_record.get("training_data")),
        ("dev", "evaluation data", evaluated),
    ):
        data_set = data_sets.get(part)
        data_set = known.setdefault(data_set, data_set)
        if difference := run_settings.data_difference(recorded, data_set):
            raise ValueError(
                f"{folder} contains a finished run with {kind} {difference[0]!r}, but "
                f"this one has {difference[1]!r}; choose another --output_dir."
            )


def _effective(options):
    values = run_settings.flags_of(options)
    return {name: v for name, v in values.items() if name not in _WITHOUT_EFFECT}


def _settings(trial):
    """Returns the settings that restarts have in common."""
    return {name: v for name, v in trial.changed.items() if name != "random_seed"}


def _best(metric, results):
    """Returns the name of the best trial: the first if several tie or all are NaN."""
    chosen, best = stopping.Selection(metric, 0), None
    for name, scores in results.items():
        if chosen.is_best(scores) or best is None:
            best = name
    return best


def _drop_other_weights(best, output_dir, names):
    """Removes the weights of all runs except the best one."""
    for name in names:
        folder = os.path.join(output_dir, trial_options.FOLDER, name)
        if name != best:
            _remove_weights(folder)
            _remove_weights(os.path.join(folder, "best"))


def _remove_weights(folder):
    if not files.is_folder(folder):
        return
    for name in files.list_folder(folder):
        if name == _CHECKPOINT or name.startswith(_WEIGHTS):
            files.remove(os.path.join(folder, name))


def _keep(output_dir, best, train_again, more_results):
    """Copies the files of the best trial to the output_dir, its weights last."""
    kept_path = os.path.join(output_dir, trial_options.FOLDER, KEPT_FILE)
    kept = _read(kept_path, {"kept": str | None})
    folder = best.options.output_dir
    if kept == {"kept": best.name}:
        return
    if not files.exists(os.path.join(folder, _CHECKPOINT)):
        # Its weights were removed when another run was better by another metric.
        logger.info("Training run %s again to restore its weights.", best.name)
        train_again()
    # Marks the output_dir as that of a search, also if the process is killed now.
    _write_json(kept_path, {"kept": None})
    for place in (output_dir, os.path.join(output_dir, "best")):
        _remove_weights(place)
    if kept is not None:
        _remove_results(output_dir, more_results)
    _copy(folder, output_dir)
    _write_json(kept_path, {"kept": best.name})
    _remove_weights(folder)
    _remove_weights(os.path.join(folder, "best"))


def _remove_results(folder, more_results):
    """Removes the scores and predictions of the run that was the best before."""
    written = {run_folder.EVAL_RESULTS_FILE, *more_results}
    written |= result_files.read_run(folder).get("results", {}).keys()
    written |= {name for names in more_results.values() for name in names}
    for name in files.list_folder(folder):
        root, extension = os.path.splitext(name)
        # The name of another data set may follow the name of a file.
        if name in written or root.partition("-")[0] + extension in written:
            path = os.path.join(folder, name)
            logger.info("Removing %s of the run that was kept before.", path)
            files.remove(path)


def _copy(source, target):
    files.make_folders(target)
    names = files.list_folder(source)
    # The file `checkpoint` commits the run, so it is copied last.
    for name in sorted(names, key=lambda name: (name == _CHECKPOINT, name)):
        path = os.path.join(source, name)
        if files.is_folder(path):
            _copy(path, os.path.join(target, name))
        elif name != RECORD_FILE and not name.startswith("."):
            _copy_file(path, os.path.join(target, name))


def _copy_file(source, target):
    with files.open_file(source, "rb") as read:
        with files.complete_or_absent(target, "wb") as written:
            while block := read.read(1 << 24):
                written.write(block)


def _spread(results):
    """Returns the values of each score, one per restart."""
    names = [name for name in results[0] if name not in _COUNTS]
    return {name: tuple(found[name] for found in results) for name in names}


def _write_table(options, trials, results):
    """Writes the results so far, one row per trial."""
    done = [trial for trial in trials if trial.name in results]
    scores = sorted(_spread(list(results.values())))
    settings = list(trials[0].changed)
    lines = [[*settings, *scores]]
    for trial in done:
        found = results[trial.name]
        lines.append([*trial.changed.values(), *(found[name] for name in scores)])
    if options.sweep is None and len(done) > 1:
        columns = [[results[t.name][name] for t in done] for name in scores]
        lines.append(["mean", *map(_mean, columns)])
        lines.append(["standard_deviation", *map(_deviation, columns)])
    name = RESTARTS_FILE if options.sweep is None else SWEEP_FILE
    with files.complete_or_absent(os.path.join(options.output_dir, name)) as file:
        file.writelines("\t".join(map(str, line)) + "\n" for line in lines)


def _mean(values):
    return float(np.mean(values))


def _deviation(values):
    return float(np.std(values, ddof=1))


def _report(options, results, best, spread):
    metric = options.best_metric
    lines = [
        f"{name}: {metric} = {run_folder.format_score(found[metric])}"
        for name, found in results.items()
    ]
    lines.append(f"Kept the best of {len(results)} runs: {best.name}.")
    for name, values in sorted(spread.items()):
        if len(values) > 1:
            lines.append(
                f"{name} = {_mean(values):.4f} ± {_deviation(values):.4f} over "
                f"{len(values)} runs"
            )
        else:
            lines.append(f"{name} = {run_folder.format_score(values[0])}")
    return "\n".join(lines)


def _write_json(path, value):
    with files.complete_or_absent(path) as file:
        file.write(json.dumps(json_values.with_null(value), indent=2) + "\n")


def _read(path, shape):
    if not files.exists(path):
        return None
    return files.read_json(path, advice="remove it to repeat the run", shape=shape)
