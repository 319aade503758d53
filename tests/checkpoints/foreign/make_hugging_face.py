"""Writes the folders of hugging_face/ with transformers, and what its models answer.

    python -m venv venv
    venv/bin/pip install transformers==5.23.0 torch==2.13.0 safetensors
    venv/bin/python tests/checkpoints/foreign/make_hugging_face.py [FOLDER ...]

Every folder has an expected.npz: a batch with padding and two segments, and what the
model of transformers gives for it. The folder gamma_beta is written by
make_hugging_face_of_2018.py.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import safetensors.torch
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
TEXTS = (
    "The CAFÉ, the café and the cafe\u0301: É.",
    "a<e1>cat</e1> sat on <e1> The dog </e1>",
)
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
    # A tokenizer that keeps accents and has two more tokens. ids.json has the ids that
    # it gives some texts.
    "own_tokenizer": (
        transformers.BertModel,
        {"vocab_size": len(TOKENS) + 2},
        {"strip_accents": False, "added_tokens": ["<e1>", "</e1>"]},
    ),
    # Masked words have an output table of their own.
    "untied": (transformers.BertForMaskedLM, {"tie_word_embeddings": False}, {}),
    # Names of weights start with "module.", and those of the next one also with
    # "_orig_mod.".
    "data_parallel": (
        transformers.BertForSequenceClassification,
        {},
        {"wrappers": [torch.nn.DataParallel]},
    ),
    "compiled": (
        transformers.BertModel,
        {},
        {"wrappers": [torch.compile, torch.nn.DataParallel]},
    ),
}


def main(*wanted):
    transformers.logging.set_verbosity_error()
    for name in wanted or MODELS:
        model_class, changes, saving = MODELS[name]
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


def save(
    model,
    folder,
    *,
    dtype=None,
    max_shard_size="5GB",
    do_lower_case=True,
    strip_accents=None,
    added_tokens=(),
    wrappers=(),
):
    if dtype is not None:
        model.to(dtype)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    wrapped = model
    for wrapper in wrappers:
        wrapped = wrapper(wrapped)
    if wrappers:
        safetensors.torch.save_file(wrapped.state_dict(), folder / "model.safetensors")
    tokenizer = transformers.BertTokenizer(
        vocab={token: index for index, token in enumerate(TOKENS)},
        do_lower_case=do_lower_case,
        strip_accents=strip_accents,
    )
    tokenizer.add_tokens(list(added_tokens), special_tokens=True)
    tokenizer.save_pretrained(folder)
    if added_tokens:
        ids = {text: tokenizer(text)["input_ids"] for text in TEXTS}
        (folder / "ids.json").write_text(json.dumps(ids, indent=2) + "\n")


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
    main(*sys.argv[1:])
