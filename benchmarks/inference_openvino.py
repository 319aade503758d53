"""Part of inference: a transformers model in OpenVINO, in sorted batches of 32."""

import inference_hugging_face
import inference_task
import numpy as np
import openvino
import transformers

COLUMNS = ("input_ids", "attention_mask", "token_type_ids")
PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}


def embedder(model, dtype):
    """Returns a function from a list of texts to vectors [N, H]."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    encoder = transformers.AutoModel.from_pretrained(model).eval()
    example = dict(tokenizer(["one", "two"], return_tensors="pt"))
    converted = openvino.convert_model(encoder, example_input=example)
    compiled = openvino.compile_model(
        converted, "CPU", {"INFERENCE_PRECISION_HINT": PRECISIONS[dtype]}
    )

    def embed(texts):
        order = np.argsort([-len(text) for text in texts], kind="stable")
        found = [None] * len(texts)
        for start in range(0, len(texts), 32):
            numbers = order[start : start + 32]
            features = tokenizer(
                [texts[number] for number in numbers],
                padding=True,
                truncation=True,
                max_length=inference_hugging_face.MAX_LENGTH,
                return_tensors="np",
            )
            states = compiled({name: features[name] for name in COLUMNS})[0]
            vectors = inference_hugging_face.mean_vectors(
                states, features["attention_mask"]
            )
            for number, vector in zip(numbers, vectors, strict=True):
                found[number] = vector
        return np.stack(found)

    return embed


def main():
    """Converts the encoder and answers the driver."""
    task = inference_task.read_task()
    embed = embedder(task["model"], task["dtype"])
    inference_task.serve(task, embed, "openvino", "transformers")


if __name__ == "__main__":
    main()
