"""Part of inference: sentence-transformers, which sorts the texts by length."""

import inference_task
import report
import sentence_transformers
import torch


def embedder(model, dtype):
    """Returns a function from a list of texts to vectors [N, H]."""
    encoder = sentence_transformers.SentenceTransformer(
        model, device="cpu", model_kwargs={"dtype": getattr(torch, dtype)}
    )

    def embed(texts):
        return encoder.encode(texts, batch_size=32, normalize_embeddings=True)

    return embed


def main():
    """Loads the encoder and answers the driver."""
    task = inference_task.read_task()
    torch.set_num_threads(report.num_cores())
    embed = embedder(task["model"], task["dtype"])
    inference_task.serve(task, embed, "sentence-transformers", "torch", "transformers")


if __name__ == "__main__":
    main()
