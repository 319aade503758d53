"""Settings that learn faster than those of 2018: `--recipe=auto`.

The defaults of the tools are those of the release. `choose` returns other ones, for the
model, the text, the machine and the time of a run, which `docs/results.md` and
`docs/decisions/tried-and-dropped.md` have measured on CPUs. They are recorded with the
run like flags that were given, so a resumed run keeps them.
"""

import glob
import math
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf import machine
from bert_tf import options as options_module
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import kinds
from bert_tf.data import record_index
from bert_tf.modeling import config as config_module
from bert_tf.training import run_file

_MINUTES = 60.0  # Of a run whose end is not given.
# Pretraining Mini takes more minutes of one core than this to overtake Tiny.
_MINUTES_OF_TINY = 240
_GPUS = "/dev/nvidia[0-9]*"
_CORES_OF_ACCELERATOR = 1000
_SMALL_TEXT = 1 << 21  # Bytes of a text that a model without dropout memorizes.
_WITHOUT_DROPOUT = ("hidden_dropout_prob=0", "attention_probs_dropout_prob=0")
# Largest width of a trained model -> peak learning rate, and epochs of fine-tuning.
_TRAINED = {256: (3e-4, 5.0), 512: (1e-4, 4.0), 768: (5e-5, 3.0), math.inf: (2e-5, 3.0)}
# The same for continued pretraining, without epochs.
_CONTINUED = {384: 5e-4, 512: 1e-4, 768: 5e-5, math.inf: 2e-5}
# Largest width of a new model -> peak learning rate, and size of initial weights.
_NEW = {128: (2e-3, 0.06), 256: (6e-4, 0.02), math.inf: (1e-4, 0.02)}
# A given flag -> what it replaces.
_REPLACES = {
    "num_train_steps": ("max_train_minutes",),
    "num_warmup_steps": ("max_train_minutes",),
    "phases": ("max_train_minutes", "max_seq_length", "max_predictions_per_seq"),
    "bert_config_file": ("model_size", "config_overrides"),
    "init_checkpoint": ("model_size", "config_overrides"),
}


def choose(
    options_class: type[options_module.Options], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the options, by name, that the given `values` leave open.

    They are those that the run in `output_dir` has recorded, else new ones.

    Raises:
        OSError, ValueError: the text or the checkpoint cannot be read, or the tool does
            not train.
    """
    declared = {d.name for d in options_module.declarations(options_class)}
    if "bias_correction" not in declared:
        raise options_module.OptionError(
            "--recipe=auto is for tools that train, such as bert_tf pretrain."
        )
    if "num_train_epochs" in declared:
        rate, num_epochs = _below(_TRAINED, _width(values))
        chosen = {"learning_rate": rate, "num_train_epochs": num_epochs}
    else:
        chosen = _for_pretraining(values)
    chosen["bias_correction"] = True
    run_dir = values.get("output_dir")
    flags = run_file.read_run(run_dir).get("flags", {}) if run_dir else {}
    chosen = {name: flags.get(name, value) for name, value in chosen.items()}
    given = dict(values)
    overrides = tuple(given.pop("config_overrides", ()))
    if "config_overrides" in chosen:
        merged = {one.partition("=")[0]: one for one in chosen["config_overrides"]}
        merged |= {one.partition("=")[0]: one for one in overrides}
        chosen["config_overrides"] = tuple(merged.values())
    without = {*given}.union(*(_REPLACES.get(name, ()) for name in given))
    return {n: v for n, v in chosen.items() if n not in without and v is not None}


def _for_pretraining(values):
    device = values.get("device", "auto")
    has_accelerator = device == "tpu" or (device != "cpu" and bool(glob.glob(_GPUS)))
    num_cores = _CORES_OF_ACCELERATOR if has_accelerator else machine.num_cores()
    minutes = values.get("max_train_minutes", _MINUTES)
    steps = values.get("num_train_steps")
    paths = files.expand(values["input_file"])
    chosen = {
        "max_train_minutes": minutes,
        "train_batch_size": 512 if has_accelerator else 32,
        "save_checkpoints_steps": 1000 if has_accelerator else 200,
    }
    if phases := values.get("phases"):
        parts = [phase.partition("@")[0] for phase in phases]
        steps = sum(int(part) for part in parts if part.isdecimal())
    if steps is not None:
        chosen["num_warmup_steps"] = steps // 10
    elif "num_warmup_steps" in values:
        raise options_module.OptionError(
            "--num_warmup_steps with --recipe=auto needs --num_train_steps."
        )
    if values.get("eval_input_file"):
        chosen |= {"eval_every_steps": 500, "eval_batch_size": 64, "max_eval_steps": 16}
    is_small = minutes * num_cores < _MINUTES_OF_TINY
    num_bytes = sum(map(files.size, paths))
    chosen["model_size"] = "tiny" if is_small or num_bytes < _SMALL_TEXT else "mini"
    if values.get("init_checkpoint"):
        rate = _below(_CONTINUED, _width(values))
    else:
        width = _width(chosen | values)
        rate, deviation = _below(_NEW, width)
        overrides = [
            f"initializer_range={deviation}",
            "position_initializer=sinusoidal",
        ]
        overrides += _WITHOUT_DROPOUT if num_bytes >= _SMALL_TEXT else ()
        chosen["config_overrides"] = tuple(overrides)
    chosen["learning_rate"] = rate
    if record_index.are_text(paths):
        # The next-sentence task delays learning from context.
        length = values.get("max_seq_length", 128 if has_accelerator else 64)
        chosen |= {"next_sentence": False, "max_seq_length": length}
        chosen["max_predictions_per_seq"] = math.ceil(0.15 * length)
    return chosen


def _width(values):
    """Returns the width of the model that the run starts from."""
    if path := values.get("bert_config_file"):
        return config_module.BertConfig.from_json_file(path).hidden_size
    if size := values.get("model_size"):
        return config_module.BertConfig.of_size(size, vocab_size=1).hidden_size
    source = formats.open_source(values.get("init_checkpoint") or kinds.SHIPPED)
    return 768 if source.config is None else source.config.hidden_size


def _below(table, width):
    return next(value for most, value in table.items() if width <= most)


def shown(values: Mapping[str, Any]) -> str:
    """Returns values as flags."""
    flags = []
    for name, value in values.items():
        text = ",".join(value) if isinstance(value, list | tuple) else str(value)
        flags.append(f"--{name}={text}")
    return " ".join(flags)
