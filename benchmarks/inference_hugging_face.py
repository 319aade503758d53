"""Part of inference: transformers, in batches of 32 texts of similar length."""

import inference_task
import numpy as np
import report
import torch
import transformers

MAX_LENGTH = 256


def mean_vectors(states, mask):
    """Returns means over the real pieces, of length 1, [B, H]."""
    weights = mask[:, :, None].astype(np.float32)
    means = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def embedder(model, dtype):
    """Returns a function from a list of texts to vectors [N, H]."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    encoder = transformers.AutoModel.from_pretrained(
        model, dtype=getattr(torch, dtype)
    ).eval()

    @torch.inference_mode()
    def embed(texts):
        order = np.argsort([-len(text) for text in texts], kind="stable")
        found = []
        for start in range(0, len(texts), 32):
            features = tokenizer(
                [texts[number] for number in order[start : start + 32]],
                padding=True,
                truncation=True,
                max_length=MAX_LENGTH,
                return_tensors="pt",
            )
            states = encoder(**features).last_hidden_state.float().numpy()
            found.append(mean_vectors(states, features["attention_mask"].numpy()))
        return np.concatenate(found)[np.argsort(order)]

    return embed


def main():
    """Loads the encoder and answers the driver."""
    task = inference_task.read_task()
    torch.set_num_threads(report.num_cores())
    embed = embedder(task["model"], task["dtype"])
    inference_task.serve(task, embed, "transformers", "torch")


if __name__ == "__main__":
    main()
