"""Part of learning_per_minute: the task of every library, and how each trains.

Each library runs in the fastest mode here: this package in float32 or mixed_bfloat16,
with or without XLA; transformers in float32 or bfloat16 autocast, eager or compiled,
with fused AdamW and logits of the masked positions only.
"""

import dataclasses
import json
import os
import shutil
import sys
import time

import numpy as np
import report
import training_step

WARMUP_PROPORTION = 0.1
MASKED_SHARE = 0.15
OUR_MODES = ("float32", "mixed_bfloat16", "float32 XLA", "mixed_bfloat16 XLA")
TORCH_MODES = ("float32", "bfloat16", "float32 compiled", "bfloat16 compiled")


class Task:
    """The task of a peer's process: settings, rows, masks, learning rates, result."""

    def __init__(self, settings):
        self.settings = settings
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

    def write(self, **result):
        """Prints the result of a peer."""
        steps_per_second = result["steps"] / result["seconds"]
        result["rows_per_second"] = steps_per_second * self.batch_size
        print(json.dumps(result))


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


def write_arrays(task):
    """Converts records to arrays that every peer can read."""
    train = columns(task["train_records"])
    heldout = columns(task["heldout_records"], task["max_heldout_rows"])
    names = ("input_ids", "input_mask", "segment_ids")
    masked = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    ids, places, originals = (train[name] for name in ("input_ids", *masked[:2]))
    rows, ranks = np.nonzero(train[masked[2]])
    ids[rows, places[rows, ranks]] = originals[rows, ranks]  # Every peer draws its own.
    arrays = {"train_ids": ids.astype(np.uint16)}  # 16 bits are enough for every id.
    arrays |= {f"heldout_{name}": heldout[name] for name in (*names, *masked)}
    np.savez(task["arrays"], **arrays)
    print(json.dumps({"rows": len(ids), "heldout": len(heldout["input_ids"])}))


def columns(path, max_rows=None):
    """Returns {name: array} of a TFRecord file."""
    from bert_tf.data import batching
    from bert_tf.data import tfrecord

    source = batching.TFRecordSource(tfrecord.RecordFiles([path]))
    parts = [
        {name: column.numpy() for name, column in batch.items()}
        for batch in source.evaluation_batches(batch_size=1024)
    ]
    num_rows = min(source.num_examples, max_rows or source.num_examples)
    return {
        name: np.concatenate([part[name] for part in parts])[:num_rows]
        for name in parts[0]
    }


def train_bert_tf(settings):
    """Trains this package as run_pretraining does."""
    import tensorflow as tf

    import bert_tf
    from bert_tf.pretraining import options as pretraining_options
    from bert_tf.pretraining import workflow as pretraining_workflow

    task = Task(settings)
    config_file = os.path.join(task.output_dir, "bert_config.json")
    with open(config_file, "w", encoding="utf-8") as file:
        json.dump(task.config, file)
    probed = pretraining_options.RunPretrainingOptions(
        output_dir=os.path.join(task.output_dir, "probe"),
        input_file=task.train_text,
        next_sentence=False,
        short_seq_prob=0.0,
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
        num_train_steps=8,
    )
    mode, seconds_of_modes = task.fastest(
        OUR_MODES, lambda mode: probe_bert_tf(probed, mode)
    )
    output_dir = os.path.join(task.output_dir, "bert_tf")
    shutil.rmtree(output_dir, ignore_errors=True)
    options = dataclasses.replace(
        probed,
        output_dir=output_dir,
        **flags_of(mode),
        num_train_steps=pretraining_options.RunPretrainingOptions.num_train_steps,
        max_train_minutes=task.minutes,
        warmup_proportion=WARMUP_PROPORTION,
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


def probe_bert_tf(options, mode):
    """Returns the time of five steps in seconds, in calls as a run makes them."""
    from bert_tf.pretraining import workflow as pretraining_workflow

    shutil.rmtree(options.output_dir, ignore_errors=True)
    pretraining_workflow.train(dataclasses.replace(options, **flags_of(mode)))
    with open(os.path.join(options.output_dir, "metrics.jsonl")) as file:
        speeds = [json.loads(line)["examples_per_second"] for line in file]
    shutil.rmtree(options.output_dir)
    return 5 * options.train_batch_size / max(speeds)


def train_hugging_face(settings):
    """Trains transformers on PyTorch in a plain loop."""
    import torch
    import transformers

    task = Task(settings)
    torch.set_num_threads(report.num_cores())
    mode, seconds_of_modes = task.fastest(
        TORCH_MODES, lambda mode: probe_hugging_face(task, mode)
    )
    torch.manual_seed(task.seed)
    trainer = TorchTrainer(task, mode)
    clock = Clock(task.minutes)
    steps = 0
    while clock.share_done < 1:
        trainer.step(task.batch(), task.rate(clock.share_done))
        steps += 1
    seconds = clock.seconds
    trainer.model.eval()
    task.write(
        mode=mode,
        seconds_of_modes=seconds_of_modes,
        steps=steps,
        seconds=seconds,
        versions={"torch": torch.__version__, "transformers": transformers.__version__},
        **task.scores(trainer.logits),
    )


class TorchTrainer:
    """A model and its optimizer in one mode."""

    def __init__(self, task, mode):
        import torch
        import transformers

        self._torch = torch
        config = transformers.BertConfig(**task.config)
        self.model = transformers.BertForMaskedLM(config)
        self.model.train()
        self._dtype = torch.bfloat16 if mode.startswith("bfloat16") else torch.float32
        self._optimizer = training_step.torch_optimizer(self.model, task.learning_rate)
        self._loss = self._plain_loss
        if mode.endswith("compiled"):
            self._loss = torch.compile(self._plain_loss)

    def step(self, batch, rate):
        """Runs one training step."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        tensors = {k: self._torch.from_numpy(v).long() for k, v in batch.items()}
        tensors["weights"] = self._torch.from_numpy(batch["weights"])
        with self._torch.autocast(
            "cpu", self._dtype, enabled=self._dtype != self._torch.float32
        ):
            loss = self._loss(tensors)
        loss.backward()
        self._torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def logits(self, batch):
        """Returns float32 logits [B, M, V] of the masked positions."""
        tensors = {k: self._torch.from_numpy(v).long() for k, v in batch.items()}
        with self._torch.no_grad():
            return self._logits(tensors).numpy()

    def _logits(self, tensors):
        hidden = self.model.bert(
            input_ids=tensors["input_ids"], attention_mask=tensors["input_mask"]
        ).last_hidden_state  # [B, S, H]
        positions = tensors["positions"][..., None].expand(-1, -1, hidden.shape[-1])
        return self.model.cls(self._torch.gather(hidden, 1, positions))  # [B, M, V]

    def _plain_loss(self, tensors):
        logits = self._logits(tensors)
        losses = self._torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), tensors["labels"].flatten(), reduction="none"
        )
        weights = tensors["weights"].flatten()
        return (losses * weights).sum() / weights.sum()


def probe_hugging_face(task, mode):
    """Returns the time of five steps in seconds, after two warm-up steps."""
    import torch

    torch._dynamo.reset()
    trainer = TorchTrainer(task, mode)
    for _ in range(2):
        trainer.step(task.batch(), 1e-5)
    started = time.monotonic()
    for _ in range(5):
        trainer.step(task.batch(), 1e-5)
    return time.monotonic() - started


if __name__ == "__main__":
    report.run(
        None,
        arrays=write_arrays,
        bert_tf=train_bert_tf,
        hugging_face=train_hugging_face,
    )
