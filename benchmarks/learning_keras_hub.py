"""Part of learning_per_minute: trains KerasHub's masked-word task with fit.

The mode is float32 or mixed_bfloat16, with or without XLA, whichever is fastest here.
"""

import time

import keras
import keras_hub
import learning_task
import tensorflow as tf

MODES = ("float32", "mixed_bfloat16", "float32 XLA", "mixed_bfloat16 XLA")


def main():
    """Reads task.json, trains, and writes the result."""
    task = learning_task.Task()
    mode, seconds_of_modes = task.fastest(MODES, lambda mode: probe(task, mode))
    keras.utils.set_random_seed(task.seed)
    model = build(task, mode)
    callback = TimeLimit(task)
    batches = data(task)
    callback.start()
    model.fit(
        batches, steps_per_epoch=2**31 - 1, epochs=1, verbose=0, callbacks=[callback]
    )
    precise = build(task, "float32")
    precise.set_weights(model.get_weights())
    task.write(
        "keras_hub",
        mode=mode,
        seconds_of_modes=seconds_of_modes,
        steps=callback.steps,
        seconds=callback.seconds,
        versions={
            "keras_hub": keras_hub.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
        },
        **task.scores(lambda batch: precise.predict_on_batch(features(batch))),
    )


def build(task, mode):
    """Returns the compiled task model."""
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
        dtype=mode.split()[0],
    )
    model = keras_hub.models.BertMaskedLM(backbone=backbone, preprocessor=None)
    optimizer = keras.optimizers.AdamW(
        task.learning_rate, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
    )
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        ),
        jit_compile=mode.endswith("XLA"),
    )
    return model


def features(batch):
    """Returns a batch's features under KerasHub's names."""
    return {
        "token_ids": batch["input_ids"],
        "padding_mask": batch["input_mask"],
        "segment_ids": batch["input_ids"] * 0,
        "mask_positions": batch["positions"],
    }


def data(task):
    """Returns an endless dataset of features, labels and weights."""

    def batches():
        while True:
            batch = task.batch()
            yield features(batch), batch["labels"], batch["weights"]

    length, masks = task.max_seq_length, task.max_predictions_per_seq
    rows = tf.TensorSpec((task.batch_size, length), tf.int32)
    places = tf.TensorSpec((task.batch_size, masks), tf.int32)
    spec = (
        {
            "token_ids": rows,
            "padding_mask": rows,
            "segment_ids": rows,
            "mask_positions": places,
        },
        places,
        tf.TensorSpec((task.batch_size, masks), tf.float32),
    )
    return tf.data.Dataset.from_generator(batches, output_signature=spec).prefetch(4)


class TimeLimit(keras.callbacks.Callback):
    """Sets the learning rate by the clock and stops when the time is up."""

    def __init__(self, task):
        super().__init__()
        self._task = task
        self.steps = 0

    def start(self):
        """Starts the clock."""
        self._clock = learning_task.Clock(self._task.minutes)

    def on_train_batch_begin(self, unused_batch, logs=None):
        """Sets the learning rate."""
        rate = self._task.rate(self._clock.share_done)
        self.model.optimizer.learning_rate = rate

    def on_train_batch_end(self, unused_batch, logs=None):
        """Counts the step."""
        self.steps += 1
        self.seconds = self._clock.seconds
        if self._clock.share_done >= 1:
            self.model.stop_training = True


def probe(task, mode):
    """Returns the time of five steps in seconds, after two warm-up steps."""
    model = build(task, mode)
    batches = iter(data(task))
    for _ in range(2):
        model.train_on_batch(*next(batches))
    started = time.monotonic()
    for _ in range(5):
        model.train_on_batch(*next(batches))
    return time.monotonic() - started


if __name__ == "__main__":
    main()
