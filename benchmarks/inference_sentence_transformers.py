"""Part of inference: sentence-transformers, which sorts the texts by length."""

import inference_task
import sentence_transformers
import torch


def main():
    """Loads the encoder and answers the driver."""
    task = inference_task.read_task()
    encoder = sentence_transformers.SentenceTransformer(
        task["model"],
        device="cpu",
        model_kwargs={"dtype": getattr(torch, task["dtype"])},
    )

    def embed(texts):
        return encoder.encode(texts, batch_size=32, normalize_embeddings=True)

    inference_task.serve(task, embed, "sentence-transformers", "torch", "transformers")


if __name__ == "__main__":
    main()
