"""Part of learning_per_minute: trains this package as run_pretraining does.

The mode is float32 or mixed_bfloat16, with or without XLA, whichever is fastest here.
"""

import dataclasses
import json
import os
import shutil
import time

import learning_task
import tensorflow as tf

import bert_tf
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow

MODES = ("float32", "mixed_bfloat16", "float32 XLA", "mixed_bfloat16 XLA")


def main():
    """Reads task.json, trains, and writes the result."""
    task = learning_task.Task()
    config_file = os.path.join(task.output_dir, "bert_config.json")
    with open(config_file, "w", encoding="utf-8") as file:
        json.dump(task.config, file)
    probed = pretraining_options.RunPretrainingOptions(
        output_dir=os.path.join(task.output_dir, "probe"),
        input_file=task.train_records,
        eval_input_file=task.heldout_records,
        bert_config_file=config_file,
        config_overrides=task.config_overrides,
        vocab_file=task.vocab_file,
        max_seq_length=task.max_seq_length,
        max_predictions_per_seq=task.max_predictions_per_seq,
        learning_rate=task.learning_rate,
        random_seed=task.seed,
        train_batch_size=task.batch_size,
        eval_batch_size=64,
        max_eval_steps=-(-task.max_heldout_rows // 64),
        save_checkpoints_steps=10**9,  # Only one, after the time is up.
        log_every_steps=20,
        num_train_steps=8,
    )
    mode, seconds_of_modes = task.fastest(MODES, lambda mode: probe(probed, mode))
    output_dir = os.path.join(task.output_dir, "bert_tf")
    shutil.rmtree(output_dir, ignore_errors=True)
    options = dataclasses.replace(
        probed,
        output_dir=output_dir,
        **flags_of(mode),
        num_train_steps=pretraining_options.RunPretrainingOptions.num_train_steps,
        max_train_minutes=task.minutes,
        warmup_proportion=learning_task.WARMUP_PROPORTION,
    )
    pretraining = pretraining_workflow.Pretraining(
        dataclasses.replace(options, do_train=True)
    )
    started = time.monotonic()
    steps = pretraining.train()["global_step"]
    seconds = time.monotonic() - started
    precise = dataclasses.replace(options, dtype="float32", jit_compile=False)
    scores = pretraining_workflow.evaluate(precise)
    task.write(
        "bert_tf",
        mode=mode,
        seconds_of_modes=seconds_of_modes,
        config_overrides=task.config_overrides,
        steps=steps,
        seconds=seconds,
        versions={"bert_tf": bert_tf.__version__, "tensorflow": tf.__version__},
        masked_lm_loss=scores["masked_lm_loss"],
        masked_lm_accuracy=scores["masked_lm_accuracy"],
    )


def flags_of(mode):
    """Returns the options of a mode."""
    dtype, *xla = mode.split()
    return {"dtype": dtype, "jit_compile": bool(xla)}


def probe(options, mode):
    """Returns the time of five steps in seconds, in calls as a run makes them."""
    shutil.rmtree(options.output_dir, ignore_errors=True)
    pretraining_workflow.train(
        dataclasses.replace(options, log_every_steps=1, **flags_of(mode))
    )
    with open(os.path.join(options.output_dir, "metrics.jsonl")) as file:
        speeds = [json.loads(line)["examples_per_second"] for line in file]
    shutil.rmtree(options.output_dir)
    return 5 * options.train_batch_size / max(speeds)


if __name__ == "__main__":
    main()
