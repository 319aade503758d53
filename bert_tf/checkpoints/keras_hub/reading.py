"""Opens a KerasHub preset of BERT.

`config.json` has the sizes, `model.weights.h5` the encoder, `task.json` and
`task.weights.h5` the head, `tokenizer.json` and `assets/` the vocabulary. The JSON
files are read as data: of the classes that they name, only BERT's own are created.
"""

import os
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.keras_files import archive
from bert_tf.checkpoints.keras_hub import library
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


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is the folder of a preset, of BERT or another model."""
    path = os.fspath(path)
    config_file = os.path.join(path, CONFIG_FILE)
    if not files.exists(config_file):
        return False
    try:
        return "registered_name" in files.read_json(config_file)
    except (OSError, ValueError):  # Most likely a damaged preset.
        return files.exists(os.path.join(path, WEIGHTS_FILE))


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a preset.

    Args:
        path: the preset's folder.

    Raises:
        OSError: a file of the preset is missing.
        ValueError: it is damaged, or a preset of a different architecture.
        ImportError: KerasHub is not installed.
    """
    path = os.fspath(path)
    described = files.read_json(os.path.join(path, CONFIG_FILE))
    if described.get("class_name") != "BertBackbone":
        raise ValueError(
            f"{path} is a KerasHub preset of {described.get('class_name')}, a "
            "different architecture; expected a preset of BertBackbone."
        )
    library.library()
    config = _config(described, path)
    head, unread_head = _head(path)
    _check_files(path, head)
    shapes = library.shapes(config, head)
    do_lower_case, strip_accents = _casing(path)
    vocab_file, vocabulary = os.path.join(path, VOCAB_FILE), None
    if files.exists(vocab_file):
        vocabulary = vocabulary_module.Vocabulary.load(vocab_file)
    return source_module.Source(
        path=path,
        format=NAME,
        shapes=shapes,
        read_each=lambda wanted: _read_each(path, config, head, wanted),
        head=head,
        config=config,
        text=text_encoding.TextEncoding(
            vocabulary=vocabulary,
            do_lower_case=do_lower_case,
            strip_accents=strip_accents,
        ),
        own_names=library.places(config.num_hidden_layers, head.kind),
        notes=()
        if unread_head is None
        else (f"the head of its {unread_head} is not read, only the encoder",),
        unread_head=unread_head,
    )


def _config(described: Mapping[str, Any], path: str) -> config_module.BertConfig:
    values = described.get("config")
    values = values if isinstance(values, dict) else {}
    missing = [theirs for theirs in _FIELDS.values() if theirs not in values]
    if missing:
        raise ValueError(
            f"{os.path.join(path, CONFIG_FILE)} has no {missing[0]} in its config; "
            "expected a file that KerasHub's save_to_preset wrote."
        )
    dtype = values.get("dtype")
    if isinstance(dtype, dict) and dtype.get("class_name") != "DTypePolicy":
        raise ValueError(
            f"{path} has weights of the dtype {dtype.get('class_name')}: it is "
            "quantized; pass the preset before quantization."
        )
    fields = {ours: values[theirs] for ours, theirs in _FIELDS.items()}
    try:
        return config_module.BertConfig.from_dict(
            {
                **fields,
                "hidden_act": library.ACTIVATION,
                "layer_norm_epsilon": library.EPSILON,
            }
        )
    except ValueError as error:
        raise ValueError(f"{os.path.join(path, CONFIG_FILE)}: {error}") from error


def _head(path: str) -> tuple[checkpoint_heads.Head, str | None]:
    """Returns the `Head`, and the class of a head that is not read."""
    encoder = checkpoint_heads.Head(kind="encoder")
    task_file = os.path.join(path, TASK_FILE)
    if not files.exists(task_file):
        return encoder, None
    task = files.read_json(task_file)
    name = task.get("class_name")
    has_weights = files.exists(os.path.join(path, TASK_WEIGHTS_FILE))
    if name not in library.CLASSIFIERS or not has_weights:
        return encoder, str(name)
    values = task.get("config")
    num_labels = values.get("num_classes") if isinstance(values, dict) else None
    if not isinstance(num_labels, int) or num_labels < 1:
        raise ValueError(
            f"{task_file}: num_classes is {num_labels!r}, expected a positive integer."
        )
    return checkpoint_heads.Head(kind=library.HEAD_KIND, num_labels=num_labels), None


def _check_files(path: str, head: checkpoint_heads.Head) -> None:
    """Checks that the weight files are complete, before any model is created."""
    shards_file = os.path.join(path, SHARDS_FILE)
    names = [WEIGHTS_FILE]
    if files.exists(shards_file):
        weight_map = files.read_json(shards_file).get("weight_map")
        if not isinstance(weight_map, dict):
            raise ValueError(f"{shards_file} has no weight_map; copy it again.")
        shards = weight_map.values()
        names = [n for one in shards for n in (one if isinstance(one, list) else [one])]
    if head.kind != "encoder":
        names.append(TASK_WEIGHTS_FILE)
    for name in dict.fromkeys(names):
        if not isinstance(name, str) or os.path.basename(name) != name:
            raise ValueError(f"{shards_file} names {name}, a file outside the folder.")
        with archive.local_weights(os.path.join(path, name)):
            pass  # It is complete.


def _read_each(
    path: str,
    config: config_module.BertConfig,
    head: checkpoint_heads.Head,
    wanted: Iterable[str],
) -> Iterator[tuple[str, np.ndarray]]:
    model = library.create(config, head)
    has_shards = files.exists(os.path.join(path, SHARDS_FILE))
    weights_file = SHARDS_FILE if has_shards else WEIGHTS_FILE
    message = f"The weights of {path} do not match its {CONFIG_FILE}"
    with archive.clear_load_errors(message):
        if head.kind == "encoder":
            model.load_weights(os.path.join(path, weights_file))
        else:
            model.backbone.load_weights(os.path.join(path, weights_file))
            model.load_task_weights(os.path.join(path, TASK_WEIGHTS_FILE))
    variables = library.variables(model, config, head)
    shapes = library.shapes(config, head)
    for name in wanted:
        yield name, library.to_release(name, variables[name], shapes[name])


def _casing(path: str) -> tuple[bool | None, bool | None]:
    """Returns do_lower_case, None if unknown, and strip_accents, None if the same."""
    path = os.path.join(path, TOKENIZER_FILE)
    values = None
    if files.exists(path):
        values = files.read_json(path).get("config")
    if not isinstance(values, dict) or not isinstance(values.get("lowercase"), bool):
        return None, None
    strip_accents = bool(values.get("strip_accents"))
    return values["lowercase"], (
        None if strip_accents == values["lowercase"] else strip_accents
    )
