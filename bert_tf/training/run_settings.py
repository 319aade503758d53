"""The settings of a run in run.json, and whether a later command may change them.

run.json describes the steps that were trained: the flags of the last steps and, if a
resumed run had different flags before, those too. It contains file and folder names
without their parent folders, because a run's folder may be published.
"""

import dataclasses
import json
import logging
import os
import re
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.training import result_files
from bert_tf.training import saving

logger = logging.getLogger(__name__)

# Names of machines and accounts, which are not recorded.
_ADDRESSES = ("gcp_project", "tpu_name", "tpu_zone", "worker_hosts", "worker_index")
# Flags that can change when a run resumes without changing what it computes.
WITHOUT_EFFECT = (
    "cache_dir",  # The order of the data, which it may change, is compared.
    "card_examples",
    "do_train",
    "do_eval",
    "do_predict",
    "dry_run",
    "eval_batch_size",
    "iterations_per_loop",
    "keep_checkpoint_max",
    "log_every_steps",
    "output_dir",
    "predict_batch_size",
    "save_checkpoints_steps",
    *_ADDRESSES,
)
# Larger values extend a finished run. 0 or none: no limit.
_LENGTHS = (
    "early_stopping_evals",
    "max_train_minutes",
    "num_train_epochs",
    "num_train_steps",
)
# Groups of options that do not decide which weights a finished run has.
_GROUPS_WITHOUT_EFFECT = ("devices", "evaluation", "saving")
# These do not decide that either. What they specify is compared instead: the data,
# the model's configuration, the vocabulary and task.json.
_COMPARED_OTHERWISE = (
    "bert_config_file",
    "config_overrides",
    "corpus_file",
    "data_dir",
    "do_lower_case",
    "ending_columns",
    "eval_file",
    "eval_input_file",
    "eval_language",
    "gradient_accumulation_steps",
    "header",
    "input_file",
    "label_column",
    "label_list",
    "labels",
    "model_size",
    "num_restarts",
    "objective",
    "predict_file",
    "recompute_layers",
    "start_column",
    "sweep",
    "tag_column",
    "tag_scheme",
    "text_b_column",
    "text_column",
    "tfds_splits",
    "train_file",
    "verbose_logging",
    "vocab_file",
    "word_column",
)
# Compared by name with runs of earlier versions, which did not record their data.
_NAMES_OF_TRAINING_DATA = ("data_dir", "input_file", "train_file")
_ORDER_FLAG = "shuffle_buffer_size"
_XLA_FLAG = "jit_compile"
_DATA = "training data"
_NAMES_SHOWN = 5  # Of files that have changed.
_PATHS = ("ensemble", "init_checkpoint", "label_list", "retrieve_with", "teacher")
_HUB_PREFIX = "hf://"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")

Changes = dict[str, tuple[Any, Any]]


def flags_of(options: options_module.Options) -> dict[str, Any]:
    """Returns the options by name, as JSON values, paths without their folders.

    Addresses and the project are left out, because a run's folder may be published.
    """
    # Through JSON, so that tuples become lists.
    flags = json.loads(json.dumps(dataclasses.asdict(options)))
    return without_folders({k: v for k, v in flags.items() if k not in _ADDRESSES})


def flags_of_workers(options: options_module.Options) -> dict[str, Any]:
    """Returns the flags, as `flags_of`, that must be the same on all workers."""
    flags = flags_of(options)
    flags.pop("cache_dir", None)  # Each machine has its own disk.
    return flags


def without_folders(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Returns flags whose paths are replaced by `short_name`."""
    return {name: _shortened(name, value) for name, value in flags.items()}


def short_name(path: str) -> str:
    """Returns the name of a file or folder without the folders above it.

    The prefix of a checkpoint and the folder best/ keep the folder that contains them,
    which says what they are. Names of models on a hub remain: they are not paths.

    Example:
        >>> short_name("/models/uncased/bert_model.ckpt"), short_name("/data/dev.tsv")
        ('uncased/bert_model.ckpt', 'dev.tsv')
    """
    if path.startswith(_HUB_PREFIX):
        return path
    if _HUB_NAME.fullmatch(path) and not files.exists(path) and ".ckpt" not in path:
        return path
    folder, name = os.path.split(path.rstrip("/"))
    if "model.ckpt" in name or name.endswith(".ckpt") or name == "best":
        return "/".join(filter(None, (os.path.basename(folder), name)))
    return name


def changed_flags(recorded: Mapping[str, Any], options: Any) -> Changes:
    """Returns {flag: (recorded, now)} of the flags that change what a run computes.

    Args:
        recorded: "flags" in run.json. A flag that an older version did not have counts
            as having its default value. Empty: the flags are not known.
        options: of the command that resumes the run.
    """
    if not recorded:
        return {}
    before = _defaults(options) | without_folders(recorded)
    now = flags_of(options)
    if before.get(_XLA_FLAG) is False and now.get(_XLA_FLAG) is None:
        # The default of earlier versions. Where it now means True, the run logs that.
        before[_XLA_FLAG] = None
    return changed_values(before, now, ignored=WITHOUT_EFFECT)


def changed_values(
    before: Mapping[str, Any], after: Mapping[str, Any], ignored: Collection[str] = ()
) -> Changes:
    """Returns {name: (before, after)} of the values in which two dicts differ."""
    names = sorted((before.keys() | after.keys()) - set(ignored))
    pairs = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def refused_changes(
    found: Changes, options: Any, *, has_data: bool, has_steps_left: bool
) -> Changes:
    """Returns the changes that would give weights other than a finished run's.

    Args:
        found: returned by `changed_flags`.
        options: of the command.
        has_data: whether run.json records the training data, which is compared then.
        has_steps_left: whether the command has steps to train. It may then ask for a
            longer run.
    """
    groups = {d.name: d.group for d in options_module.declarations(type(options))}
    ignored = set(_COMPARED_OTHERWISE)
    if has_steps_left and _is_longer(found):
        ignored |= set(_LENGTHS)
    if not has_data:
        ignored -= set(_NAMES_OF_TRAINING_DATA)
    return {
        name: pair
        for name, pair in found.items()
        if name not in ignored
        and (name == "dtype" or groups.get(name) not in _GROUPS_WITHOUT_EFFECT)
    }


def refuse(run_dir: str, step: int, found: Changes) -> None:
    """Raises a ValueError: a finished run was called with different settings."""
    before = ", ".join(f"{name} {_shown(pair[0])}" for name, pair in found.items())
    now = ", ".join(f"{name} {_shown(pair[1])}" for name, pair in found.items())
    raise ValueError(
        f"{run_dir} contains a finished run ({step} steps) with {before}; this command "
        f"has {now}. Choose another --output_dir to train with these settings, or omit "
        "--do_train to use the run as it is."
    )


def refuse_data(run_dir: str, found: Changes) -> None:
    """Raises a ValueError about a run that is resumed with different training data."""
    [(before, now)] = found.values()
    raise ValueError(
        f"{run_dir} contains a run that was trained on {before}, but this command "
        f"trains on {now}; use the same data, or another --output_dir."
    )


def changed_data(
    recorded: Mapping[str, Any] | None, data_set: result_files.DataSet | None
) -> Changes:
    """Returns {"training data": (recorded, now)} if they differ.

    Args:
        recorded: "training_data" in run.json. Earlier versions did not record what
            earlier stages of a training used; then only the last stage is compared.
        data_set: of the command that resumes the run.
    """
    if recorded is None or data_set is None:
        return {}
    given = result_files.entry(data_set)
    before, now = [recorded], [given]
    if "earlier_stages" in recorded and "earlier_stages" in given:
        before = [*recorded["earlier_stages"], recorded]
        now = [*given["earlier_stages"], given]
    if len(before) == len(now) and all(map(result_files.is_same_data, before, now)):
        return {}
    name_before, name_now = (
        ",".join(stage["name"] for stage in stages) for stages in (before, now)
    )
    name_now += " (different content)" if name_before == name_now else ""
    return {_DATA: (name_before, name_now)}


def warn_of_changed_files(
    run_dir: str,
    recorded: Mapping[str, Any] | None,
    data_set: result_files.DataSet | None,
) -> None:
    """Logs a warning if remote training files have a different size or time.

    This is not an error, because a file that was restored has a new time.

    Args:
        run_dir: folder of the run.
        recorded: "training_data" in run.json. Earlier versions did not record sizes
            and times; then nothing is compared.
        data_set: of the command that resumes the run.
    """
    before = (recorded or {}).get("remote_files")
    if before is None or data_set is None:
        return
    changed = [file for file in data_set.remote_files if file not in before]
    if changed:
        names = [file.rpartition(": ")[0] for file in changed[:_NAMES_SHOWN]]
        names += ["..."] if len(changed) > _NAMES_SHOWN else []
        logger.warning(
            "%s: %d of the remote training files changed after the run had started "
            "(%s). Unless their content is that of before, the steps that are left "
            "train on other examples; then start a new run in another --output_dir.",
            run_dir,
            len(changed),
            ", ".join(names),
        )


def check_order(
    run_dir: str,
    run: Mapping[str, Any],
    data_set: result_files.DataSet | None,
    found: Changes,
) -> None:
    """Raises a ValueError if the same data would be read in a different order.

    Args:
        run_dir: folder of the run.
        run: content of run.json. Without an order, the run read its data in that of
            local files: in earlier versions, remote files had no order of their own.
        data_set: of the command that resumes the run.
        found: returned by `changed_flags` and `changed_data`. If there are such
            changes, a different order is expected.
    """
    before = (run.get("training_data") or {}).get("order")
    if not run or data_set is None or before == data_set.order:
        return
    if _ORDER_FLAG in found or _DATA in found:
        return
    raise ValueError(
        f"{run_dir} contains a run that read its examples {_described(before)}, but "
        f"this command reads them {_described(data_set.order)}; "
        + ("omit" if before else "pass")
        + " --cache_dir to read remote files as before, or choose another --output_dir."
    )


def check_best(run_dir: str, found: Changes, options: Any) -> None:
    """Raises a ValueError if a different score would select best/.

    Args:
        run_dir: folder of the run.
        found: returned by `changed_flags`.
        options: of the command that resumes the run.
    """
    is_selected = files.exists(os.path.join(run_dir, saving.BEST_FOLDER))
    if "best_metric" in found and options.eval_every_steps and is_selected:
        before, now = found["best_metric"]
        raise ValueError(
            f"{run_dir}: the checkpoint in best/ was selected by {before}, not {now}; "
            f"use --best_metric={before}, or another --output_dir."
        )


def _is_longer(found):
    """Returns whether the flags that differ ask for a longer run."""
    pairs = [found[name] for name in _LENGTHS if name in found]
    return any(
        isinstance(before, int | float) and before and (not now or now > before)
        for before, now in pairs
    )


def _described(order):
    return f"from remote files in {order}" if order else "in the order of local files"


def _shown(value):
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _shortened(name, value):
    is_path = name.endswith(("_file", "_dir")) or name in _PATHS
    if not is_path or not value:
        return value
    if isinstance(value, str):
        return ",".join(map(short_name, value.split(",")))
    return [_shortened(name, v) for v in value] if isinstance(value, list) else value


def _defaults(options):
    """Returns {name: default} of a record's fields that have a default."""
    found = {
        field.name: field.default
        for field in dataclasses.fields(options)
        if field.default is not dataclasses.MISSING
    }
    return json.loads(json.dumps(found))
