"""Checks in transformers what bert_tf writes: same keys, same outputs, same ids.

    pip install -e .                                  # in one environment
    PYTHONPATH=. python tests/checkpoints/foreign/check_hugging_face.py write /tmp/x

    pip install transformers torch                    # in another, or not
    python tests/checkpoints/foreign/check_hugging_face.py check /tmp/x

The first writes a random model of every kind of head, as a Hugging Face folder, with
what it computes. The second loads each with the class of transformers that belongs to
it; it prints a line a folder, and fails where a key is missing or unexpected, an output
is more than 1e-5 away or a text has other ids.
"""

import json
import pathlib
import sys

import numpy as np

TOLERANCE = 1e-5
# Kind of head -> what its configuration has of its own.
MODELS = {
    "encoder": {"hidden_act": "gelu_erf", "layer_norm_epsilon": 1e-7},
    "pretraining": {"hidden_act": "gelu"},
    "masked_lm": {"hidden_act": "gelu_erf"},
    "classification": {"hidden_act": "relu"},
    "question_answering": {"hidden_act": "tanh"},
    "token_classification": {"hidden_act": "gelu"},
    "multiple_choice": {"hidden_act": "linear"},
}
TEXTS = [
    "The cat sat on the mat.",
    "Café, CAFÉ! don't $5^2",
    "你好 world",
    "a" * 150,  # Longer than the words that transformers knows by itself.
    "ab cd ef " * 40,  # Longer than the model: it is cut off.
]
# Names of transformers -> ours.
OUTPUTS = {
    "last_hidden_state": "sequence_output",
    "pooler_output": "pooled_output",
    "prediction_logits": "masked_lm_logits",
    "seq_relationship_logits": "next_sentence_logits",
    "start_logits": "start_logits",
    "end_logits": "end_logits",
    "logits": "logits",
}


def write(folder):
    """Writes a model of every kind, and one in shards, with what they compute."""
    from bert_tf.checkpoints import added_words

    for kind, changes in MODELS.items():
        source = random_source(kind, changes)
        write_source(folder / kind, source)
        if kind == "masked_lm":
            # More added words than its table has padding rows for.
            words = ["cat", "mat", "café", "world", "don"]
            grown = added_words.grow_source(source, words, words_file="words")
            write_source(folder / "grown", grown)


def write_source(folder, source):
    """Writes a source as a Hugging Face folder, and what its model computes."""
    from bert_tf.checkpoints import hugging_face
    from bert_tf.checkpoints import loading

    folder.mkdir(parents=True)
    hugging_face.write(source, folder)
    np.savez(folder.with_suffix(".npz"), **answers(loading.model_of(source), source))


def random_source(kind, changes):
    """Returns the `Source` of a random model."""
    from tests.checkpoints import sources
    from tests.modeling import small_config

    letters = sorted({c for text in TEXTS for c in text.lower() if not c.isspace()})
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    tokens = [*special, *letters, *(f"##{letter}" for letter in letters)]
    sizes = small_config.create(
        vocab_size=len(tokens) + 3,  # The table may be padded.
        num_hidden_layers=2,
        max_position_embeddings=64,
        **changes,
    )
    return sources.create(kind, sizes=sizes, tokens=tokens)


def answers(model, source):
    """Returns a batch, what our model computes, and the ids of texts."""
    from bert_tf.checkpoints.conversion import verification
    from bert_tf.tokenization import full

    batch = verification.probe_features(source.config, source.head.kind)
    length = batch["input_ids"].shape[-1]
    if source.head.kind in ("masked_lm", "pretraining"):
        rows = len(batch["input_ids"])
        batch["masked_lm_positions"] = np.tile(np.arange(length), (rows, 1))
    found = {f"input/{name}": value for name, value in batch.items()}
    for name, value in verification.model_outputs(model, batch).items():
        found[f"output/{name}"] = value
    tokenizer = full.FullTokenizer(source.vocabulary, source.do_lower_case)
    longest = source.config.max_position_embeddings
    for index, text in enumerate(TEXTS):
        pieces = ["[CLS]", *tokenizer.tokenize(text)[: longest - 2], "[SEP]"]
        found[f"ids/{index}"] = np.array(tokenizer.convert_tokens_to_ids(pieces))
    return found


def check(folder):
    """Prints a line for each folder that `write` wrote; returns how many failed."""
    import transformers

    transformers.logging.set_verbosity_error()
    if transformers.__version__ >= "5":
        transformers.logging.disable_progress_bar()
    num_failed = 0
    for path in sorted(folder.glob("*.npz")):
        failures, difference = failures_of(path.with_suffix(""), np.load(path))
        num_failed += bool(failures)
        verdict = "; ".join(failures) or "ok"
        print(f"{path.stem:22} largest difference {difference:.1e}  {verdict}")
    return num_failed


def failures_of(folder, recorded):
    """Returns sentences about the faults of a folder, and the largest difference."""
    import transformers

    class_name = json.loads((folder / "config.json").read_text())["architectures"][0]
    model_class = getattr(transformers, class_name)
    model, info = model_class.from_pretrained(folder, output_loading_info=True)
    failures = [f"{what}: {sorted(names)}" for what, names in info.items() if names]
    found = computed(model.eval(), recorded)
    differences = {}
    for name, value in found.items():
        if name == "logits" and class_name == "BertForMaskedLM":
            ours = recorded["output/masked_lm_logits"]
        else:
            ours = recorded[f"output/{OUTPUTS[name]}"]
        differences[name] = float(np.max(np.abs(value - ours)))
        if not differences[name] <= TOLERANCE:
            failures.append(f"{name} differs by {differences[name]:.1e}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for index, text in enumerate(TEXTS):
        encoded = tokenizer(text, truncation=True)
        if encoded["input_ids"] != recorded[f"ids/{index}"].tolist():
            failures.append(f"different ids for {text[:20]!r}")
        if "token_type_ids" not in encoded:
            failures.append("the tokenizer gives no segments")
    return failures, max(differences.values())


def computed(model, recorded):
    """Returns {name of transformers: array} of what a model computes for the batch."""
    import torch

    names = {
        "input_ids": "input_ids",
        "attention_mask": "input_mask",
        "token_type_ids": "segment_ids",
    }
    batch = {
        theirs: torch.tensor(recorded[f"input/{ours}"].astype(np.int64))
        for theirs, ours in names.items()
    }
    with torch.no_grad():
        outputs = model(**batch)
    return {name: value.numpy() for name, value in outputs.items()}


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "check"):
        sys.exit(__doc__)
    sys.exit({"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2])))
