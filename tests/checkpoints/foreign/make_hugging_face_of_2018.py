"""Writes hugging_face/gamma_beta with the library that transformers was in 2018.

    python -m venv venv
    venv/bin/pip install torch==2.13.0 safetensors boto3 requests tqdm numpy
    venv/bin/pip install --no-deps pytorch-pretrained-bert==0.3.0
    venv/bin/python tests/checkpoints/foreign/make_hugging_face_of_2018.py

It named the normalization's weights gamma and beta, wrote the masked-word decoder
beside the word embeddings that it equals, and knew no model_type. Its state
dictionary, which it pickled, is saved here by safetensors.
"""

import pathlib

import numpy as np
import safetensors.torch
import torch
from pytorch_pretrained_bert import modeling

FOLDER = pathlib.Path(__file__).parent / "hugging_face" / "gamma_beta"
TEXT = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat a dog ran far . ,"
TOKENS = TEXT.split()
IDS = [[2, 5, 6, 7, 3, 10, 11, 3], [2, 11, 12, 3, 6, 3, 0, 0]]
MASK = [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0]]
SEGMENTS = [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 0, 0]]


def main():
    torch.manual_seed(2018)
    config = modeling.BertConfig(
        len(TOKENS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=20,
    )
    model = modeling.BertForPreTraining(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.3 * torch.randn_like(parameter)
            parameter.copy_(1 + noise if name.endswith("gamma") else noise)
        ids, mask, segments = map(torch.tensor, (IDS, MASK, SEGMENTS))
        layers, pooled = model.bert(ids, segments, mask)
        logits, next_sentence_logits = model(ids, segments, mask)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "config.json").write_text(config.to_json_string())
    (FOLDER / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    state = {name: value.clone() for name, value in model.state_dict().items()}
    safetensors.torch.save_file(state, FOLDER / "model.safetensors")
    np.savez(
        FOLDER / "expected.npz",
        **{
            "input/input_ids": np.array(IDS),
            "input/attention_mask": np.array(MASK),
            "input/token_type_ids": np.array(SEGMENTS),
            "layers": torch.stack(layers).numpy(),
            "pooler_output": pooled.numpy(),
            "prediction_logits": logits.numpy(),
            "seq_relationship_logits": next_sentence_logits.numpy(),
        },
    )


if __name__ == "__main__":
    main()
