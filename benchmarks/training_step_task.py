"""Part of training_step: what every peer trains; needs only NumPy.

A peer's process gets a size, a dtype and a mode on its command line.
"""

import sys
import time

import numpy as np
import report

BATCHES = {"base": (8, 128, 20), "mini": (32, 128, 20)}  # Rows, pieces, masked pieces.
WIDTHS = {"base": (12, 768, 12), "mini": (4, 256, 4)}  # Layers, width, heads.
VOCAB_SIZE = 30522
LEARNING_RATE = 1e-4
DROPOUT = 0.1
# A measurement takes this many steps, about two seconds.
STEPS = {"base": 2, "mini": 4}


class Task:
    """The task of a peer's process.

    Attributes:
        size: "base" or "mini".
        dtype: "float32" or "bfloat16".
        mode: how the peer runs its step, such as "compiled".
    """

    def __init__(self):
        self._started = time.time()
        self.size, self.dtype, self.mode = sys.argv[1:4]
        self.num_steps = STEPS[self.size]

    @property
    def config(self):
        """The content of bert_config.json."""
        layers, width, heads = WIDTHS[self.size]
        return {
            "vocab_size": VOCAB_SIZE,
            "hidden_size": width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": 4 * width,
            "hidden_act": "gelu",
            "hidden_dropout_prob": DROPOUT,
            "attention_probs_dropout_prob": DROPOUT,
            "max_position_embeddings": 512,
            "type_vocab_size": 2,
            "initializer_range": 0.02,
        }

    def batch(self):
        """Returns a batch of random pieces under this package's names, int32."""
        rows, length, masked = BATCHES[self.size]
        rng = np.random.default_rng(12345)
        ids = rng.integers(1000, VOCAB_SIZE, (rows, length))
        positions = np.sort(
            np.argsort(rng.random((rows, length)), axis=1)[:, :masked], axis=1
        )
        columns = {
            "input_ids": ids,
            "input_mask": np.ones_like(ids),
            "segment_ids": np.tile(np.arange(length) * 2 // length, (rows, 1)),
            "masked_lm_positions": positions,
            "masked_lm_ids": np.take_along_axis(ids, positions, axis=1),
            "next_sentence_labels": rng.integers(0, 2, rows),
        }
        return {name: values.astype(np.int32) for name, values in columns.items()}

    def serve(self, take_steps, versions):
        """Takes the first steps, then answers; see `report.serve`.

        Args:
            take_steps: function from a number of steps to the last step's loss.
            versions: packages to report.
        """
        take_steps(1)
        first_seconds = time.time() - self._started
        take_steps(2)

        def measure():
            started, cpu_started = time.perf_counter(), time.process_time()
            loss = take_steps(self.num_steps)
            seconds = (time.perf_counter() - started) / self.num_steps
            cpu_seconds = (time.process_time() - cpu_started) / self.num_steps
            return {"seconds": seconds, "cpu_seconds": cpu_seconds, "loss": loss}

        report.serve(
            measure,
            first_seconds=first_seconds,
            versions=report.versions(*versions),
        )
