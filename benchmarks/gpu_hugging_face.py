"""Part of gpu: Hugging Face's pretraining model on PyTorch."""

import json
import sys
import time

import report
import torch
import transformers


def main():
    """Compiles the step and serves measurements."""
    with open(sys.argv[1], encoding="utf-8") as file:
        case = json.load(file)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = _create_model(case).to(device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, weight_decay=0.01, fused=device == "cuda"
    )
    # PyTorch's compiler needs a C compiler on CPUs; there it is only a trial.
    forward = torch.compile(model) if device == "cuda" else model
    batch = _batch(case, device)

    def measure(num_steps=case["num_steps"]):
        started = time.perf_counter()
        for _ in range(num_steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = forward(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        float(loss)  # Waits for the device.
        return {"seconds": (time.perf_counter() - started) / num_steps}

    measure(2)
    report.serve(measure, versions=report.versions("torch", "transformers"))


def _create_model(case):
    sizes = {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 768}
    if case["model"] == "bert-large-uncased":
        sizes = {"num_hidden_layers": 24, "num_attention_heads": 16}
        sizes |= {"hidden_size": 1024, "intermediate_size": 4096}
    if case["model"] == "tiny":
        sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32}
        sizes |= {"intermediate_size": 32, "vocab_size": 64}
    config = transformers.BertConfig(**sizes, attn_implementation="sdpa")
    return transformers.BertForPreTraining(config)


def _batch(case, device):
    shape = (case["batch_size"], case["max_seq_length"])
    ids = torch.ones(shape, dtype=torch.long, device=device)
    labels = torch.full(shape, -100, device=device)
    labels[:, : case["num_predictions"]] = 1
    return {
        "input_ids": ids,
        "attention_mask": ids,
        "token_type_ids": ids,
        "labels": labels,
        "next_sentence_label": ids[:, 0],
    }


if __name__ == "__main__":
    main()
