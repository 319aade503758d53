"""Writes the files of sentence_transformers/ with sentence-transformers.

    python -m venv venv
    venv/bin/pip install sentence-transformers==6.2.0 transformers==5.23.0 torch
    venv/bin/python tests/checkpoints/foreign/make_sentence_transformers.py

Run it again with sentence-transformers 4.1.0 and transformers 4.57.6 for the older
layout. Each version gets a folder. Folders of the same model differ only in small JSON
files, so `shared/` and `shared_ranker/` have the files that all of them have, and
`variants.json` the other ones: {name of a folder: {file: its text}}. `expected.npz` has
what the library computes with each folder: vectors of TEXTS, or scores of PAIRS.
"""

import inspect
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import sentence_transformers
import torch
import transformers
from sentence_transformers import models

FOLDER = pathlib.Path(__file__).parent / "sentence_transformers"
VERSION = sentence_transformers.__version__
IS_NEW = int(VERSION.split(".")[0]) >= 6
TOKENS_TEXT = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat a dog ran far . , ! ? ' - : "
    "query passage un ##want ##ed runn ##ing ##s ##e cafe 1 ##2 3"
)
TOKENS = TOKENS_TEXT.split()
TEXTS = [
    "The cat sat on a mat.",
    "A dog ran far, far, far: running, unwanted, on the cafés the cat sat on!",
    "cat",
    "the the the the the the the the the the the the the the the the the the the cat",
]
PAIRS = [
    ("the cat", "a dog ran far"),
    ("a dog ran far , running", "the cat sat on the mat , on the mat"),  # Cut equally.
    ("cat", "the dog ran far , far , far , far , far , far , far"),
    ("the dog ran far , far , far , far , far , far , far", "cat"),
    ("the cat sat on the mat , on the mat", "a dog ran far , running"),
    ("the cat sat on the mat . !", "a dog ran far , running ."),
]
SIZES = {
    "vocab_size": len(TOKENS),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 24,
}
# Name -> pooling, with Normalize, maximum length, arguments of SentenceTransformer.
BI_ENCODERS = {
    f"{pooling}{'_unit' * unit}_{length}": (pooling, unit, length, {})
    for pooling in ("cls", "mean", "max")
    for unit in (False, True)
    for length in ((9, 24) if IS_NEW else (9,))
}
PROMPTS = {"query": "query: ", "passage": "passage: "}
BI_ENCODERS["prompts"] = ("mean", True, 16, {"prompts": PROMPTS})
BI_ENCODERS["default_prompt"] = (
    "cls",
    False,
    16,
    {"prompts": PROMPTS, "default_prompt_name": "query", "similarity_fn_name": "dot"},
)
# Name -> activation (None: the default), maximum length.
CROSS_ENCODERS = {
    "ranker_sigmoid": (torch.nn.Sigmoid(), 24),
    "ranker_identity": (torch.nn.Identity(), 24),
    "ranker_default": (None, 24),
    "ranker_short": (torch.nn.Identity(), 12),  # 9 pieces of text: an odd number.
    "ranker_shorter": (torch.nn.Sigmoid(), 11),
}
# What bert_tf refuses: name -> the modules after the encoder.
REFUSED = {
    "dense": lambda: [_pooling("mean"), models.Dense(8, 4)],
    "last_token": lambda: [_pooling("lasttoken")],
    "mean_sqrt": lambda: [_pooling("mean_sqrt_len_tokens")],
    "two_poolings": lambda: [_pooling("mean", "max")],
    "without_prompt": lambda: [_pooling("mean", include_prompt=False)],
    "layer_norm": lambda: [_pooling("mean"), models.LayerNorm(8)],
    "layer_weights": lambda: [
        models.WeightedLayerPooling(8, num_hidden_layers=1, layer_start=0),
        _pooling("mean"),
    ],
}


def main():
    with tempfile.TemporaryDirectory() as temporary:
        _write(pathlib.Path(temporary))


def _write(temporary):
    encoder, ranker = _plain_models(temporary)
    folders, expected = {}, {}
    for name, (pooling, unit, length, arguments) in BI_ENCODERS.items():
        modules = [_pooling(pooling), *([models.Normalize()] if unit else [])]
        folders[name] = _saved_bi_encoder(
            temporary / name, encoder, modules, length, arguments
        )
        model = sentence_transformers.SentenceTransformer(str(folders[name]))
        expected[name] = model.encode(TEXTS)
        if name == "prompts":
            for kind in PROMPTS:
                expected[f"{name}/{kind}"] = model.encode(TEXTS, prompt_name=kind)
    for name, modules in REFUSED.items():
        folders[name] = _saved_bi_encoder(temporary / name, encoder, modules(), 24, {})
    for name, (activation, length) in CROSS_ENCODERS.items():
        folders[name] = _saved_ranker(temporary / name, ranker, activation, length)
        model = sentence_transformers.CrossEncoder(str(folders[name]))
        expected[name] = model.predict(PAIRS)
    target = FOLDER / VERSION
    shutil.rmtree(target, ignore_errors=True)
    variants = _divided(folders, target)
    (target / "variants.json").write_text(json.dumps(variants, indent=1) + "\n")
    np.savez_compressed(target / "expected.npz", **expected)
    (target / "texts.json").write_text(
        json.dumps({"texts": TEXTS, "pairs": PAIRS}, indent=1) + "\n"
    )


def _pooling(*modes, include_prompt=True):
    if IS_NEW:
        return models.Pooling(8, modes, include_prompt=include_prompt)
    names = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    flags = dict.fromkeys(names.values(), False)
    flags |= {names.get(mode, mode): True for mode in modes}
    flags = {f"pooling_mode_{name}": value for name, value in flags.items()}
    return models.Pooling(8, include_prompt=include_prompt, **flags)


def _plain_models(temporary):
    """Returns the folders of an encoder and a ranker, saved with transformers."""
    tokens = temporary / "vocab.txt"
    tokens.write_text("".join(f"{token}\n" for token in TOKENS))
    tokenizer = transformers.BertTokenizerFast(str(tokens), do_lower_case=True)
    torch.manual_seed(1)
    folders = []
    for name, model_class, more in (
        ("encoder", transformers.BertModel, {}),
        ("ranker", transformers.BertForSequenceClassification, {"num_labels": 1}),
    ):
        model = model_class(transformers.BertConfig(**SIZES, **more))
        for weight_name, weight in model.named_parameters():
            is_scale = weight_name.endswith("LayerNorm.weight")
            torch.nn.init.normal_(weight, mean=float(is_scale), std=0.5)
        folder = str(temporary / name)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        folders.append(folder)
    return folders


def _saved_bi_encoder(folder, encoder, modules, max_seq_length, arguments):
    transformer = models.Transformer(encoder, max_seq_length=max_seq_length)
    model = sentence_transformers.SentenceTransformer(
        modules=[transformer, *modules], **arguments
    )
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


def _saved_ranker(folder, ranker, activation, max_length):
    arguments = inspect.signature(sentence_transformers.CrossEncoder).parameters
    name = "activation_fn" if "activation_fn" in arguments else None
    name = name or "default_activation_function"
    model = sentence_transformers.CrossEncoder(
        ranker, max_length=max_length, **{name: activation}
    )
    model.save_pretrained(str(folder))
    (folder / "README.md").unlink(missing_ok=True)
    return folder


def _divided(folders, target):
    """Copies what all folders of a model share; returns their other files."""
    variants = {}
    for shared, names in (
        ("shared", [name for name in folders if name not in CROSS_ENCODERS]),
        ("shared_ranker", list(CROSS_ENCODERS)),
    ):
        contents = {name: _contents(folders[name]) for name in names}
        first = contents[names[0]]
        common = {
            place
            for place, data in first.items()
            if all(content.get(place) == data for content in contents.values())
        }
        for place in common:
            copy = target / shared / place
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(first[place])
        for name, content in contents.items():
            variants[name] = {
                place: data.decode()
                for place, data in content.items()
                if place not in common
            }
    return variants


def _contents(folder):
    """Returns {file: its bytes}, without the weights of modules that are refused."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not (path.parent != folder and path.suffix == ".safetensors")
    }


if __name__ == "__main__":
    sys.exit(main())
