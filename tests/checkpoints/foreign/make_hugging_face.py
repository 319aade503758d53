"""Writes the folders of hugging_face/ with transformers, and what its models answer.

    python -m venv venv
    venv/bin/pip install transformers==5.23.0 torch==2.13.0 safetensors
    venv/bin/python tests/checkpoints/foreign/make_hugging_face.py

Every folder has an expected.npz: a batch with padding and two segments, and what the
model of transformers gives for it. The folder gamma_beta is written by
make_hugging_face_of_2018.py.
"""

import pathlib
import shutil

import numpy as np
import torch
import transformers

FOLDER = pathlib.Path(__file__).parent / "hugging_face"
TEXT = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat a dog ran far . , ! ? ' - "
    "un ##want ##ed runn ##ing ##s ##e caf café cafe É The Cat 你 好 я ##да 1 ##2 3"
)
TOKENS = TEXT.split()
SIZES = {
    "vocab_size": len(TOKENS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
}
BATCH = {
    "input_ids": [
        [2, 5, 6, 7, 3, 20, 21, 22, 3],
        [2, 11, 12, 3, 6, 3, 0, 0, 0],
        [2, 4, 3, 0, 0, 0, 0, 0, 0],
    ],
    "attention_mask": [
        [1, 1, 1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0, 0, 0],
    ],
    "token_type_ids": [
        [0, 0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0],
    ],
}
TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
# Folder -> class, what its configuration has of its own, how it is saved.
MODELS = {
    "encoder": (transformers.BertModel, {}, {}),
    "pretraining": (
        transformers.BertForPreTraining,
        {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
        {},
    ),
    "masked_lm": (transformers.BertForMaskedLM, {}, {"do_lower_case": False}),
    "classification": (
        transformers.BertForSequenceClassification,
        {"id2label": {0: "bad", 1: "so so", 2: "good"}, "hidden_act": "relu"},
        {},
    ),
    "question_answering": (transformers.BertForQuestionAnswering, {}, {}),
    "token_classification": (
        transformers.BertForTokenClassification,
        {"id2label": dict(enumerate(TAGS)), "hidden_act": "gelu_pytorch_tanh"},
        {"do_lower_case": False},
    ),
    "multiple_choice": (transformers.BertForMultipleChoice, {}, {}),
    # The table has more rows than there are tokens, as after padding to 64.
    "sharded": (
        transformers.BertForPreTraining,
        {"vocab_size": 64},
        {"max_shard_size": "8KB"},
    ),
    "bfloat16": (
        transformers.BertForSequenceClassification,
        {"num_labels": 4},
        {"dtype": torch.bfloat16},
    ),
    "float16": (transformers.BertModel, {}, {"dtype": torch.float16}),
}


def main():
    transformers.logging.set_verbosity_error()
    for name, (model_class, changes, saving) in MODELS.items():
        torch.manual_seed(len(name))
        config = transformers.BertConfig(**SIZES | changes)
        model = randomized(model_class(config)).eval()
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        save(model, folder, **saving)
        # What is left of the weights in half precision, computed in float32.
        np.savez(folder / "expected.npz", **answers(model.float()))


def randomized(model):
    """Returns the model with no bias 0 and no scale 1, which would hide mistakes."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = 0.3 * torch.randn_like(parameter)
            parameter.copy_(1 + noise if "LayerNorm.weight" in name else noise)
    return model


def save(model, folder, *, dtype=None, max_shard_size="5GB", do_lower_case=True):
    if dtype is not None:
        model.to(dtype)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    tokenizer = transformers.BertTokenizer(
        vocab={token: index for index, token in enumerate(TOKENS)},
        do_lower_case=do_lower_case,
    )
    tokenizer.save_pretrained(folder)


def answers(model):
    """Returns the batch and every output of a model, as arrays."""
    batch = {name: torch.tensor(rows) for name, rows in BATCH.items()}
    if isinstance(model, transformers.BertForMultipleChoice):
        # Three sequences are the endings of one example, and in a different order.
        batch = {k: torch.stack([v, v.flip(0).roll(1, 0)]) for k, v in batch.items()}
    with torch.no_grad():
        outputs = model(**batch, output_hidden_states=True)
    found = {f"input/{name}": rows.numpy() for name, rows in batch.items()}
    for name, value in outputs.items():
        value = torch.stack(value) if isinstance(value, tuple) else value
        found[name] = value.numpy()
    return found


if __name__ == "__main__":
    main()
