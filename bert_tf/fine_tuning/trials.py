"""Several runs of which the best one is kept: restarts, and sweeps over settings.

Each run has a folder of its own below `trials/`. What is finished is recorded there
(`trial.json`), so that a search that was killed goes on where it was. Only the best
run so far keeps its weights, and in the end they are moved to the output_dir. Runs are
compared by their last checkpoints, which their results are of; what a run has in best/
comes along and is not looked at.

Source: section 4.1 and appendix A.3 of the paper: restarts for small data sets, the
best of a few rates, batch sizes and numbers of epochs on the dev set.
"""

import dataclasses
import gc
import json
import logging
import math
import os
from collections.abc import Callable
from collections.abc import Mapping

import numpy as np

from bert_tf import files
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import trial_options
from bert_tf.training import run_folder
from bert_tf.training import selection

logger = logging.getLogger(__name__)

RECORD_FILE = "trial.json"
KEPT_FILE = "kept.json"
RESTARTS_FILE = "restarts.tsv"
SWEEP_FILE = "sweep.tsv"
_CHECKPOINT = "checkpoint"
_WEIGHTS = "model.ckpt-"
# Results that are no scores.
_COUNTS = ("global_step", "loss")
# Which run is kept does not change what a run is.
_WITHOUT_EFFECT = (*run_folder.WITHOUT_EFFECT, "best_metric", "num_restarts", "sweep")


def run(
    options: trial_options.TrialOptions, run_one: Callable[..., Mapping[str, float]]
) -> str:
    """Runs all trials that are not finished, and keeps the best one.

    Args:
        options: of the whole search.
        run_one: function from the options of a trial to its scores; trains and
            evaluates.

    Returns:
        A report: a line a trial, the best one, mean and spread over restarts.

    Raises:
        ValueError: the folder holds a run that was trained alone, a trial's holds one
            with other settings, or the scores do not have `options.best_metric`.
        OSError: a file cannot be written.
    """
    trials = options.trials()
    _check_no_single_run(options.output_dir)
    results = {}
    for number, trial in enumerate(trials, start=1):
        found = _finished(trial)
        words = "is finished" if found else "starts"
        logger.info("Run %d of %d, %s, %s.", number, len(trials), trial.name, words)
        results[trial.name] = found or _run(trial, run_one)
        best = _best(options.best_metric, results)
        _drop_weights_but_of(best, options.output_dir, results)
        _write_table(options, trials, results)
    [best] = [trial for trial in trials if trial.name == best]
    _keep(options.output_dir, best, run_one)
    siblings = [t for t in trials if _settings(t) == _settings(best)]
    spread = _spread([results[trial.name] for trial in siblings])
    model_card.rewrite_scores(options.output_dir, spread)
    return _report(options, results, best, spread)


def _check_no_single_run(output_dir):
    """Refuses to replace a run that no search brought there."""
    kept = os.path.join(output_dir, trial_options.FOLDER, KEPT_FILE)
    is_run = files.exists(os.path.join(output_dir, _CHECKPOINT))
    if is_run and not files.exists(kept):
        raise ValueError(
            f"{output_dir} holds a run that was trained alone, which the best of "
            "several would replace; choose another --output_dir."
        )


def _run(trial, run_one):
    found = dict(run_one(trial.options))
    gc.collect()  # The model and its optimizer, before the next ones are made.
    record = {"settings": _effective(trial.options), "results": found}
    _write_json(os.path.join(trial.options.output_dir, RECORD_FILE), record)
    return found


def _finished(trial):
    """Returns the results of a trial that was run to its end, or None."""
    record = _read(os.path.join(trial.options.output_dir, RECORD_FILE))
    if record is None:
        return None
    now = json.loads(json.dumps(_effective(trial.options)))
    for name in sorted(now.keys() | record["settings"].keys()):
        before = record["settings"].get(name)
        if before != now.get(name):
            raise ValueError(
                f"{trial.options.output_dir} holds a finished run with {name} "
                f"{before!r}, and this one has {now.get(name)!r}; choose another "
                "--output_dir."
            )
    return record["results"]


def _effective(options):
    values = dataclasses.asdict(options)
    return {name: v for name, v in values.items() if name not in _WITHOUT_EFFECT}


def _settings(trial):
    """Returns what restarts of the same settings have in common."""
    return {name: v for name, v in trial.changed.items() if name != "random_seed"}


def _best(metric, results):
    """Returns the name of the trial with the best score, the first of equal ones."""
    chosen, best = selection.Selection(metric, 0), None
    for name, scores in results.items():
        score = scores.get(metric)
        is_number = score is None or not math.isnan(score)
        if (is_number and chosen.is_best(scores)) or best is None:
            best = name
    return best


def _drop_weights_but_of(best, output_dir, names):
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


def _keep(output_dir, best, run_one):
    """Brings the files of the best trial into the output_dir, its weights last."""
    kept_path = os.path.join(output_dir, trial_options.FOLDER, KEPT_FILE)
    kept = _read(kept_path)
    folder = best.options.output_dir
    if kept == {"kept": best.name}:
        return
    if not files.exists(os.path.join(folder, _CHECKPOINT)):
        # Its weights were dropped when another one was better, by another score.
        logger.info("Run %s is trained again: its weights are gone.", best.name)
        _run(best, run_one)
    # From here on what is in the output_dir is of a search, even where it is killed.
    _write_json(kept_path, {"kept": None})
    for place in (output_dir, os.path.join(output_dir, "best")):
        _remove_weights(place)
    _copy(folder, output_dir)
    _write_json(kept_path, {"kept": best.name})
    _remove_weights(folder)
    _remove_weights(os.path.join(folder, "best"))


def _copy(source, target):
    files.make_folders(target)
    names = files.list_folder(source)
    # The file `checkpoint` commits, so it comes last.
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
    """Returns {score: its values, one a restart}, counts left out."""
    names = [name for name in results[0] if name not in _COUNTS]
    return {name: tuple(found[name] for found in results) for name in names}


def _write_table(options, trials, results):
    """Writes what is known so far, a row a trial."""
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
    lines = [f"{name}: {metric} = {found[metric]}" for name, found in results.items()]
    lines.append(f"The best of {len(results)} runs is kept: {best.name}.")
    for name, values in sorted(spread.items()):
        if len(values) > 1:
            lines.append(
                f"{name} = {_mean(values):.4f} ± {_deviation(values):.4f} over "
                f"{len(values)} runs"
            )
        else:
            lines.append(f"{name} = {values[0]}")
    return "\n".join(lines)


def _write_json(path, value):
    with files.complete_or_absent(path) as file:
        file.write(json.dumps(value, indent=2) + "\n")


def _read(path):
    if not files.exists(path):
        return None
    with files.open_file(path) as file:
        return json.load(file)
