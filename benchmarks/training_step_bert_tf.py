"""Part of training_step: this package's step, as run_pretraining takes it."""

import training_step_task

task = training_step_task.Task()  # Before the imports, which the first step includes.

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import bert_tf  # noqa: E402
from bert_tf.training import building  # noqa: E402
from bert_tf.training import optimizers  # noqa: E402
from bert_tf.training import options as training_options  # noqa: E402
from bert_tf.training import steps  # noqa: E402


def main():
    """Builds model and optimizer, and answers the driver."""
    if task.mode == "deterministic":
        tf.config.experimental.enable_op_determinism()
    dtype = {"bfloat16": "mixed_bfloat16"}.get(task.dtype, task.dtype)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = building.build_model(
            lambda: bert_tf.BertPretrainer(
                bert_tf.BertConfig.from_dict(task.config), dtype=dtype
            )
        )
        optimizer = optimizers.create_optimizer(
            model,
            training_options.OptimizerOptions(
                learning_rate=training_step_task.LEARNING_RATE
            ),
            num_train_steps=1_000_000,
            num_warmup_steps=10_000,
        )
    train_steps = steps.build_train_steps(
        model,
        optimizer,
        strategy,
        random_seed=12345,
        jit_compile=task.mode == "compiled",
    )
    iterator = iter(batches())

    def take_steps(count):
        return float(train_steps(iterator, tf.constant(count))["loss"][-1])

    task.serve(take_steps, ("tensorflow", "keras"))


def batches():
    """Returns an endless dataset of the batch, each with the number of its step."""
    batch = task.batch()
    rows = len(batch["input_ids"])
    batch |= {
        "masked_lm_weights": np.ones(batch["masked_lm_ids"].shape, np.float32),
        steps.EXAMPLE_INDEX: np.arange(rows, dtype=np.int64),
    }
    numbers = tf.data.Dataset.counter()
    return numbers.map(lambda step: batch | {steps.STEP: tf.repeat(step, rows)})


main()
