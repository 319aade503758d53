"""Part of training_step: KerasHub's masked-word task; it has no next-sentence head."""

import training_step_task

task = training_step_task.Task()  # Before the imports, which the first step includes.

import keras  # noqa: E402
import keras_hub  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def main():
    """Builds and compiles the task model, and answers the driver."""
    size = task.config
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=size["vocab_size"],
        num_layers=size["num_hidden_layers"],
        num_heads=size["num_attention_heads"],
        hidden_dim=size["hidden_size"],
        intermediate_dim=size["intermediate_size"],
        dropout=size["hidden_dropout_prob"],
        max_sequence_length=size["max_position_embeddings"],
        num_segments=2,
        dtype={"bfloat16": "mixed_bfloat16"}.get(task.dtype, task.dtype),
    )
    model = keras_hub.models.BertMaskedLM(backbone=backbone, preprocessor=None)
    optimizer = keras.optimizers.AdamW(
        training_step_task.LEARNING_RATE,
        weight_decay=0.01,
        epsilon=1e-6,
        global_clipnorm=1.0,
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=task.mode == "compiled",
    )
    batch = task.batch()
    features = {
        "token_ids": batch["input_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["segment_ids"],
        "mask_positions": batch["masked_lm_positions"],
    }
    columns = (features, batch["masked_lm_ids"], np.ones_like(batch["masked_lm_ids"]))
    columns = tf.nest.map_structure(tf.constant, columns)

    def take_steps(count):
        for _ in range(count):
            loss, *_ = np.ravel(model.train_on_batch(*columns))
        return float(loss)

    task.serve(take_steps, ("keras-hub", "keras", "tensorflow"))


main()
