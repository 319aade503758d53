"""Part of learning_per_minute: trains transformers on PyTorch in a plain loop.

The mode is float32 or bfloat16 autocast, eager or compiled, whichever is fastest here,
with fused AdamW. The masked-word head computes only the masked positions.
"""

import time

import learning_task
import report
import torch
import transformers

MODES = ("float32", "bfloat16", "float32 compiled", "bfloat16 compiled")


def main():
    """Reads task.json, trains, and writes the result."""
    task = learning_task.Task()
    torch.set_num_threads(report.num_cores())
    mode, seconds_of_modes = task.fastest(MODES, lambda mode: probe(task, mode))
    torch.manual_seed(task.seed)
    trainer = Trainer(task, mode)
    clock = learning_task.Clock(task.minutes)
    steps = 0
    while clock.share_done < 1:
        trainer.step(task.batch(), task.rate(clock.share_done))
        steps += 1
    seconds = clock.seconds
    trainer.model.eval()
    task.write(
        "hugging_face",
        mode=mode,
        seconds_of_modes=seconds_of_modes,
        steps=steps,
        seconds=seconds,
        versions={"torch": torch.__version__, "transformers": transformers.__version__},
        **task.scores(trainer.logits),
    )


class Trainer:
    """A model and its optimizer in one mode."""

    def __init__(self, task, mode):
        config = transformers.BertConfig(**task.config)
        self.model = transformers.BertForMaskedLM(config)
        self.model.train()
        self._dtype = torch.bfloat16 if mode.startswith("bfloat16") else torch.float32
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]
        self._optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": 0.01},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=task.learning_rate,
            eps=1e-6,
            fused=True,
        )
        self._loss = self._plain_loss
        if mode.endswith("compiled"):
            self._loss = torch.compile(self._plain_loss)

    def step(self, batch, rate):
        """Runs one training step."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        tensors = {k: torch.from_numpy(v).long() for k, v in batch.items()}
        tensors["weights"] = torch.from_numpy(batch["weights"])
        with torch.autocast("cpu", self._dtype, enabled=self._dtype != torch.float32):
            loss = self._loss(tensors)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def logits(self, batch):
        """Returns float32 logits [B, M, V] of the masked positions."""
        tensors = {k: torch.from_numpy(v).long() for k, v in batch.items()}
        return self._logits(tensors).numpy()

    def _logits(self, tensors):
        hidden = self.model.bert(
            input_ids=tensors["input_ids"], attention_mask=tensors["input_mask"]
        ).last_hidden_state  # [B, S, H]
        positions = tensors["positions"][..., None].expand(-1, -1, hidden.shape[-1])
        return self.model.cls(torch.gather(hidden, 1, positions))  # [B, M, V]

    def _plain_loss(self, tensors):
        logits = self._logits(tensors)
        losses = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), tensors["labels"].flatten(), reduction="none"
        )
        weights = tensors["weights"].flatten()
        return (losses * weights).sum() / weights.sum()


def probe(task, mode):
    """Returns the time of five steps in seconds, after two warm-up steps."""
    torch._dynamo.reset()
    trainer = Trainer(task, mode)
    for _ in range(2):
        trainer.step(task.batch(), 1e-5)
    started = time.monotonic()
    for _ in range(5):
        trainer.step(task.batch(), 1e-5)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
