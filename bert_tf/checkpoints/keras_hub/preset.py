"""The format "keras_hub": a KerasHub preset of BERT, a folder.

`config.json` has the sizes, `model.weights.h5` the encoder, `task.json` and
`task.weights.h5` the head, `tokenizer.json` and `assets/` the vocabulary. The JSON
files are read as data: no class that they name is made but BERT's own, by its name.
`keras_hub_writing` writes them.
"""

import contextlib
import json
import os
import warnings

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.keras_files import archive
from bert_tf.checkpoints.keras_hub import library
from bert_tf.checkpoints.keras_hub import writing
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module

NAME = "keras_hub"
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
SHARDS_FILE = "model.weights.json"
TASK_FILE = "task.json"
TASK_WEIGHTS_FILE = "task.weights.h5"
TOKENIZER_FILE = "tokenizer.json"
VOCAB_FILE = os.path.join("assets", "tokenizer", "vocabulary.txt")
# Field of a BertConfig -> KerasHub's name for it.
_FIELDS = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
# Names of KerasHub's classes, its older ones too -> kind of head.
_KINDS = {
    "BertMaskedLM": "masked_lm",
    "BertTextClassifier": "classification",
    "BertClassifier": "classification",
}

placement = writing.placement
write = writing.write
library_outputs = writing.library_outputs
compute_as_there = writing.compute_as_there


def is_at(path):
    """Returns whether a path is that of a preset's folder, of BERT or another."""
    path = os.fspath(path)
    if not files.exists(os.path.join(path, CONFIG_FILE)):
        return False
    try:
        return "registered_name" in _read_json(os.path.join(path, CONFIG_FILE))
    except (OSError, ValueError):  # Most likely meant as one.
        return files.exists(os.path.join(path, WEIGHTS_FILE))


def open_source(path):
    """Returns the `Source` of a preset.

    Args:
        path: the folder.

    Raises:
        OSError: a file of it is missing.
        ValueError: it is damaged, or a preset of another architecture.
        ImportError: KerasHub is not installed.
    """
    path = os.fspath(path)
    described = _read_json(os.path.join(path, CONFIG_FILE))
    _check_class(described, path)
    library.library()
    config = _config(described, path)
    head, notes = _head(path)
    _check_files(path, head)
    shapes = library.shapes(config, head)
    do_lower_case, tokenizer_notes = _casing(path)
    return source_module.Source(
        path=path,
        format=NAME,
        shapes=shapes,
        read_each=lambda wanted: _read_each(path, config, head, wanted),
        head=head,
        config=config,
        vocabulary=_vocabulary(path),
        do_lower_case=do_lower_case,
        own_names=library.places(config.num_hidden_layers, head.kind),
        notes=(*notes, *tokenizer_notes),
    )


def _check_class(described, path):
    name = described.get("class_name")
    if name != "BertBackbone":
        raise ValueError(
            f"{path} is a KerasHub preset of {name}, another architecture; expected "
            "one of BertBackbone."
        )


def _config(described, path):
    values = described.get("config")
    values = values if isinstance(values, dict) else {}
    missing = [theirs for theirs in _FIELDS.values() if theirs not in values]
    if missing:
        raise ValueError(
            f"{os.path.join(path, CONFIG_FILE)} has no {missing[0]} in its config; "
            "expected what KerasHub's save_to_preset writes."
        )
    dtype = values.get("dtype")
    if isinstance(dtype, dict) and dtype.get("class_name") != "DTypePolicy":
        raise ValueError(
            f"{path} has weights of the dtype {dtype.get('class_name')}: it is "
            "quantized; give the preset that it was made of."
        )
    fields = {ours: values[theirs] for ours, theirs in _FIELDS.items()}
    try:
        return config_module.BertConfig(
            **fields,
            hidden_act=library.ENCODER_ACTIVATION,
            layer_norm_epsilon=library.ENCODER_EPSILON,
        )
    except ValueError as error:
        raise ValueError(f"{os.path.join(path, CONFIG_FILE)}: {error}") from error


def _head(path):
    """Returns the `Head` and notes on it."""
    encoder = checkpoint_heads.Head(kind="encoder")
    task_file = os.path.join(path, TASK_FILE)
    if not files.exists(task_file):
        return encoder, ()
    task = _read_json(task_file)
    name = task.get("class_name")
    kind = _KINDS.get(name)
    if kind is None or not files.exists(os.path.join(path, TASK_WEIGHTS_FILE)):
        return encoder, (f"its {name} has no weights of a head that is known here",)
    if kind == "masked_lm":
        return checkpoint_heads.Head(kind=kind), (
            "KerasHub's masked-word head computes "
            f"{library.HEAD_ACTIVATION} and adds "
            f"{library.HEAD_EPSILON:g} to the variance; a bert_config.json "
            f"has one activation, here the encoder's, "
            f"{library.ENCODER_ACTIVATION}, and one epsilon, so that this "
            "head's scores differ slightly here",
        )
    values = task.get("config")
    num_labels = values.get("num_classes") if isinstance(values, dict) else None
    if not isinstance(num_labels, int) or num_labels < 1:
        raise ValueError(
            f"{task_file}: num_classes is {num_labels!r}, expected a whole number."
        )
    return checkpoint_heads.Head(kind=kind, num_labels=num_labels), ()


def _check_files(path, head):
    """Checks that the weights are there and whole, before anything is made."""
    shards_file = os.path.join(path, SHARDS_FILE)
    names = [WEIGHTS_FILE]
    if files.exists(shards_file):
        found = _read_json(shards_file).get("weight_map", {}).values()
        names = [name for one in found for name in _listed(one)]
    if head.kind != "encoder":
        names.append(TASK_WEIGHTS_FILE)
    for name in dict.fromkeys(names):
        if os.path.basename(name) != name:
            raise ValueError(f"{shards_file} names {name}, a file elsewhere.")
        archive.shapes(os.path.join(path, name))


def _listed(names):
    return names if isinstance(names, list) else [names]


def _read_each(path, config, head, wanted):
    model = library.create(config, head)
    has_shards = files.exists(os.path.join(path, SHARDS_FILE))
    weights_file = SHARDS_FILE if has_shards else WEIGHTS_FILE
    with _clear_errors(path):
        if head.kind == "encoder":
            model.load_weights(os.path.join(path, weights_file))
        else:
            model.backbone.load_weights(os.path.join(path, weights_file))
            model.load_task_weights(os.path.join(path, TASK_WEIGHTS_FILE))
    variables = library.variables(model, config, head)
    shapes = library.shapes(config, head)
    for name in wanted:
        yield name, library.to_release(name, variables[name], shapes[name])


@contextlib.contextmanager
def _clear_errors(path):
    with warnings.catch_warnings():
        # Keras warns, and goes on with layers newly initialized.
        warnings.filterwarnings("error", "Skipping nested container")
        # Of a preset that was saved in training; its slots are not needed.
        warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
        try:
            yield
        except (ValueError, KeyError, OSError, UserWarning) as error:
            reason = str(error).strip().split("\n")[0].rstrip(".")[:200]
            raise ValueError(
                f"The weights of {path} do not fit its {CONFIG_FILE}: {reason}."
            ) from error


def _vocabulary(path):
    path = os.path.join(path, VOCAB_FILE)
    return vocabulary_module.Vocabulary.load(path) if files.exists(path) else None


def _casing(path):
    """Returns do_lower_case, None where it is not known, and notes."""
    path = os.path.join(path, TOKENIZER_FILE)
    values = _read_json(path).get("config") if files.exists(path) else None
    if not isinstance(values, dict) or not isinstance(values.get("lowercase"), bool):
        return None, ()
    if values["lowercase"] and not values.get("strip_accents"):
        return True, (
            "its tokenizer lower-cases text and keeps accents; that of 2018, used "
            "here, removes them",
        )
    return values["lowercase"], ()


def _read_json(path):
    with files.open_file(path) as file:
        try:
            values = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds no JSON object.")
    return values
