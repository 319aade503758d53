"""Part of training_step: transformers on PyTorch, in a plain loop.

It is fast in every way that the library offers on a CPU: bfloat16 autocast, fused
AdamW, scaled-dot-product attention, and logits of the masked positions only.
"""

import training_step_task

task = training_step_task.Task()  # Before the imports, which the first step includes.

import report  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


def main():
    """Builds model and optimizer, and answers the driver."""
    torch.set_num_threads(report.num_cores())
    torch.manual_seed(12345)
    # The release's GELU, as one fused operation; "gelu_new" takes several.
    activation = {"hidden_act": "gelu_pytorch_tanh"}
    config = transformers.BertConfig(**task.config | activation)
    model = transformers.BertForPreTraining(config)
    model.train()
    optimizer = torch.optim.AdamW(
        [
            {
                "params": [p for p in model.parameters() if p.ndim > 1],
                "weight_decay": 0.01,
            },
            {
                "params": [p for p in model.parameters() if p.ndim <= 1],
                "weight_decay": 0.0,
            },
        ],
        lr=training_step_task.LEARNING_RATE,
        eps=1e-6,
        fused=True,
    )
    batch = {k: torch.from_numpy(v).long() for k, v in task.batch().items()}

    def loss_of(batch):
        return pretraining_loss(model, batch)

    if task.mode == "compiled":
        loss_of = torch.compile(loss_of)

    def take_steps(count):
        for _ in range(count):
            with torch.autocast(
                "cpu", torch.bfloat16, enabled=task.dtype == "bfloat16"
            ):
                loss = loss_of(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    task.serve(take_steps, ("torch", "transformers"))


def pretraining_loss(model, batch):
    """Returns the sum of both losses."""
    encoded = model.bert(
        input_ids=batch["input_ids"],
        attention_mask=batch["input_mask"],
        token_type_ids=batch["segment_ids"],
    )
    hidden = encoded.last_hidden_state  # [B, S, H]
    positions = batch["masked_lm_positions"][..., None]
    positions = positions.expand(-1, -1, hidden.shape[-1])
    logits = model.cls.predictions(torch.gather(hidden, 1, positions))  # [B, M, V]
    cross_entropy = torch.nn.functional.cross_entropy
    masked = cross_entropy(
        logits.flatten(0, 1).float(), batch["masked_lm_ids"].flatten()
    )
    scores = model.cls.seq_relationship(encoded.pooler_output)
    return masked + cross_entropy(scores.float(), batch["next_sentence_labels"])


main()
