"""Part of learning_per_minute: shared by all peers; needs only NumPy."""

import json
import sys
import time

import numpy as np

WARMUP_PROPORTION = 0.1
MASKED_SHARE = 0.15


class Task:
    """The task of a peer's process: settings, rows, masks, learning rates, result."""

    def __init__(self):
        with open(sys.argv[1], encoding="utf-8") as file:
            self.settings = json.load(file)
        self.arrays = np.load(self.settings["arrays"])
        self._train_ids = self.arrays["train_ids"]
        self._rng = np.random.default_rng(self.settings["seed"])
        self._rows = iter(())

    def __getattr__(self, name):
        return self.settings[name]

    def batch(self):
        """Returns the next masked batch: ids, mask, positions, labels, weights."""
        chosen = [self._next_row() for _ in range(self.batch_size)]
        ids = self._train_ids[np.array(chosen)].astype(np.int32)
        maskable = (ids > 0) & ~np.isin(ids, self.special_ids)
        keys = np.where(maskable, self._rng.random(ids.shape), 2.0)
        most = self.max_predictions_per_seq
        positions = np.sort(np.argsort(keys, axis=1)[:, :most], axis=1)
        counts = np.round(MASKED_SHARE * (ids > 0).sum(axis=1)).clip(1, most)
        # Of the chosen positions, the ones with the smallest keys are predicted.
        taken = np.take_along_axis(keys, positions, axis=1)
        ranks = np.argsort(np.argsort(taken, axis=1), axis=1)
        weights = ((ranks < counts[:, None]) & (taken < 1)).astype(np.float32)
        labels = np.take_along_axis(ids, positions, axis=1)
        draw = self._rng.random(positions.shape)
        others = self._rng.integers(0, self.vocab_size, positions.shape)
        hidden = np.where(
            draw < 0.8, self.mask_id, np.where(draw < 0.9, others, labels)
        )
        hidden = np.where(weights > 0, hidden, labels)
        masked = ids.copy()
        np.put_along_axis(masked, positions, hidden.astype(np.int32), axis=1)
        return {
            "input_ids": masked,
            "input_mask": (ids > 0).astype(np.int32),
            "positions": positions.astype(np.int32),
            "labels": labels,
            "weights": weights,
        }

    def _next_row(self):
        row = next(self._rows, None)
        if row is None:
            self._rows = iter(self._rng.permutation(len(self._train_ids)))
            row = next(self._rows)
        return row

    def rate(self, share_done):
        """Returns the learning rate at a share of the time: warm-up, linear decay."""
        if share_done < WARMUP_PROPORTION:
            return self.learning_rate * share_done / WARMUP_PROPORTION
        return self.learning_rate * max(0.0, 1.0 - share_done)

    def heldout_batches(self, batch_size=64):
        """Yields the held-out rows in the form of `batch`, with `segment_ids`."""
        names = {
            "input_ids": "input_ids",
            "input_mask": "input_mask",
            "segment_ids": "segment_ids",
            "positions": "masked_lm_positions",
            "labels": "masked_lm_ids",
            "weights": "masked_lm_weights",
        }
        columns = {k: self.arrays[f"heldout_{v}"] for k, v in names.items()}
        for start in range(0, len(columns["labels"]), batch_size):
            yield {k: v[start : start + batch_size] for k, v in columns.items()}

    def scores(self, logits_of):
        """Returns loss and accuracy of a function batch -> float32 logits [B, M, V]."""
        loss = hits = weight = 0.0
        for batch in self.heldout_batches():
            logits = np.asarray(logits_of(batch), np.float32)
            top = logits.max(axis=-1)
            sums = np.log(np.exp(logits - top[..., None]).sum(axis=-1)) + top
            right = np.take_along_axis(logits, batch["labels"][..., None], -1)[..., 0]
            loss += float(((sums - right) * batch["weights"]).sum())
            hits += float(((right >= top) * batch["weights"]).sum())
            weight += float(batch["weights"].sum())
        return {"masked_lm_loss": loss / weight, "masked_lm_accuracy": hits / weight}

    def fastest(self, modes, seconds_of_steps):
        """Returns the fastest mode, and the seconds of all modes.

        Args:
            modes: names of modes.
            seconds_of_steps: function from a mode to the seconds of a few steps. A mode
                for which it raises an error is ruled out.
        """
        seconds = {}
        for mode in modes:
            try:
                seconds[mode] = seconds_of_steps(mode)
            except Exception as error:
                print(f"{mode} does not run here: {str(error)[:200]}", file=sys.stderr)
        return min(seconds, key=seconds.get), seconds

    def write(self, peer, **result):
        """Writes the result of a peer."""
        result["rows_per_second"] = (
            result["steps"] * self.batch_size / result["seconds"]
        )
        path = self.settings["output_dir"] + f"/{peer}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)


class Clock:
    """The wall time that a peer may use for training."""

    def __init__(self, minutes):
        self._seconds = 60.0 * minutes
        self._started = time.monotonic()

    @property
    def seconds(self):
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def share_done(self):
        """Share of the time that has passed."""
        return self.seconds / self._seconds
