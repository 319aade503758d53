"""Part of fine_tuning: transformers on PyTorch, in a plain loop.

It is fast in every way that the library offers on a CPU: bfloat16 autocast, fused
AdamW, scaled-dot-product attention, the fast tokenizer for all texts in one call,
batches padded to their longest row, and, if the settings say so, a compiled model.
"""

import fine_tuning_task
import report
import torch
import transformers

BATCHES_PER_POOL = 50  # As many as ours, of which the rows are sorted by length.


def main():
    """Fine-tunes, evaluates and saves, and answers the driver."""
    settings = fine_tuning_task.read_settings()
    torch.set_num_threads(report.num_cores())
    torch.manual_seed(settings["seed"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings["model"])
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        settings["model"], num_labels=2
    )
    autocast = torch.autocast(
        "cpu", torch.bfloat16, enabled=settings["dtype"] == "bfloat16"
    )
    # Lengths vary from batch to batch, hence `dynamic`.
    called = torch.compile(model, dynamic=True) if settings["is_compiled"] else model
    train(called, tokenizer, settings, autocast)
    accuracy = evaluate(called, tokenizer, settings, autocast)
    model.save_pretrained(settings["output_dir"])
    tokenizer.save_pretrained(settings["output_dir"])
    fine_tuning_task.answer(accuracy, report.versions("torch", "transformers"))


def examples(tokenizer, settings, name):
    """Returns the features of a file as a list of dicts."""
    rows = fine_tuning_task.read_rows(settings, name)
    texts = list(zip(*(texts for texts, _ in rows), strict=True))
    features = tokenizer(
        *map(list, texts), truncation=True, max_length=fine_tuning_task.MAX_LENGTH
    )
    return [
        {**{key: features[key][i] for key in features}, "labels": label}
        for i, (_, label) in enumerate(rows)
    ]


def order(lengths, *, is_grouped):
    """Returns the batches of an epoch, lists of row numbers."""
    size = fine_tuning_task.BATCH_SIZE
    rows = torch.randperm(len(lengths)).tolist()
    if is_grouped:
        pool = BATCHES_PER_POOL * size
        rows = [
            row
            for start in range(0, len(rows), pool)
            for row in sorted(rows[start : start + pool], key=lengths.__getitem__)
        ]
    starts = torch.arange(0, len(rows) - size + 1, size)
    if is_grouped:
        starts = starts[torch.randperm(len(starts))]
    return [rows[start : start + size] for start in starts.tolist()]


def train(model, tokenizer, settings, autocast):
    """Trains for the epochs of the settings."""
    data = examples(tokenizer, settings, "train")
    collate = transformers.DataCollatorWithPadding(tokenizer)
    lengths = [len(row["input_ids"]) for row in data]
    batches = [
        batch
        for _ in range(settings["num_epochs"])
        for batch in order(lengths, is_grouped=settings["is_grouped"])
    ]
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": 0.01},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=fine_tuning_task.RATE,
        eps=1e-6,
        fused=True,
    )
    schedule = transformers.get_linear_schedule_with_warmup(
        optimizer,
        int(len(batches) * fine_tuning_task.WARMUP_PROPORTION),
        len(batches),
    )
    model.train()
    for batch in batches:
        with autocast:
            loss = model(**collate([data[row] for row in batch])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)


@torch.inference_mode()
def evaluate(model, tokenizer, settings, autocast):
    """Returns the accuracy on the development set, in batches of similar length."""
    data = examples(tokenizer, settings, "dev")
    data.sort(key=lambda row: len(row["input_ids"]))
    collate = transformers.DataCollatorWithPadding(tokenizer)
    model.eval()
    correct = 0
    for start in range(0, len(data), fine_tuning_task.BATCH_SIZE):
        batch = collate(data[start : start + fine_tuning_task.BATCH_SIZE])
        labels = batch.pop("labels")
        with autocast:
            logits = model(**batch).logits
        correct += int((logits.argmax(-1) == labels).sum())
    return correct / len(data)


if __name__ == "__main__":
    main()
