"""The files that sentence-transformers and text-embeddings-inference read.

They describe how the vectors of a text's pieces become one vector, or how the output of
a classifier becomes a score. Settings for which `TextEncoding` has no field are
refused, because vectors or scores computed without them would differ.
"""

import dataclasses
import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import foreign_keys
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.hugging_face import config as hugging_face_config
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

_MODULES = "modules.json"
_OPTIONS = "sentence_bert_config.json"
_SETTINGS = "config_sentence_transformers.json"
_POOLING = "1_Pooling"
_NORMALIZE = "2_Normalize"
_POOLING_CONFIG = "config.json"
# The flags of folders before version 6, which have one per kind of pooling.
_FLAGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
}
_FLAG_START = "pooling_mode_"
# Module folders, such as 1_Pooling or 2_Dense.
_MODULE_FOLDER = re.compile(r"[1-9]_[A-Za-z]+")
_PACKAGE = "sentence_transformers."
_CLASSES = "sentence_transformers.models"
_SUPPORTED_MODULES = (
    ["Transformer", "Pooling", "Normalize"],
    ["Transformer", "Pooling"],
    ["Transformer"],
)
_MODEL_TYPES = ("SentenceTransformer", "CrossEncoder")
_BI_ENCODER_TASK = "feature-extraction"
_RANKER_TASK = "sequence-classification"
_WITH_MASKS = (kinds.Head.MASKED_LM, kinds.Head.PRETRAINING)
_VECTOR_NAME = "sentence_embedding"
# Activation -> torch class.
_ACTIVATION_CLASSES = {
    numerics.IDENTITY: "torch.nn.modules.linear.Identity",
    numerics.SIGMOID: "torch.nn.modules.activation.Sigmoid",
}


def read(
    folder: str,
    text: text_encoding.TextEncoding,
    *,
    described: hugging_face_config.Description,
    max_length: float | None,
) -> text_encoding.TextEncoding:
    """Returns the `TextEncoding` of a folder.

    Args:
        folder: the Hugging Face folder.
        text: the fields that its tokenizer states.
        described: the content of its config.json.
        max_length: the tokenizer's maximum length; None: not stated.
    """
    modules = _modules(folder)
    prompts_shape = {"prompts?": (None, {str: (None, str)})}
    settings = _read_known(folder, _SETTINGS, prompts_shape)
    model_type = settings.get("model_type") or _MODEL_TYPES[0]
    if model_type not in _MODEL_TYPES:
        raise _unsupported(folder, _SETTINGS, f"the model_type {model_type!r}")
    options = _read_known(folder, _OPTIONS, {"max_seq_length?": _is_length})
    positions = described.config.max_position_embeddings
    longest = options.get("max_seq_length") or max_length or positions
    fields: dict[str, Any] = {"max_seq_length": int(min(longest, positions))}
    if options.get("do_lower_case") and not text.do_lower_case:
        # The text is lowercased before the tokenizer sees it.
        fields |= {"do_lower_case": True, "strip_accents": bool(text.strip_accents)}
    plain = text
    # Masks are filled in whole texts only. The usual limit is the number of positions.
    if described.kind not in _WITH_MASKS and fields["max_seq_length"] < positions:
        plain = dataclasses.replace(text, max_seq_length=fields["max_seq_length"])
    if "Pooling" in modules:
        fields["pooling"] = _pooling(folder, modules["Pooling"], described.config)
        fields["normalize"] = "Normalize" in modules
        fields["similarity"] = settings.get("similarity_fn_name")
        if fields["normalize"]:
            _check_normalize(folder, modules["Normalize"])
    elif described.kind == kinds.Head.CLASSIFICATION:
        activation = _activation(folder, settings, described)
        if activation is None:
            return plain
        fields["output_activation"] = activation
    elif modules:
        raise _unsupported(folder, _MODULES, "no module Pooling")
    else:
        return plain
    task = options.get("transformer_task") or _BI_ENCODER_TASK
    expected = _BI_ENCODER_TASK if "Pooling" in modules else _RANKER_TASK
    if modules and task != expected:
        raise _unsupported(folder, _OPTIONS, f"the transformer_task {task!r}")
    prompts = settings.get("prompts") or {}
    fields["prompts"] = {name: prompt or "" for name, prompt in prompts.items()}
    fields["default_prompt_name"] = settings.get("default_prompt_name")
    return text_encoding.TextEncoding.from_dict(
        {**text.to_dict(), **fields}, path=folder, vocabulary=text.vocabulary
    )


def write(
    folder: str,
    config: config_module.BertConfig,
    text: text_encoding.TextEncoding,
    *,
    is_ranker: bool,
) -> None:
    """Writes the files of a sentence encoder or of a ranker, which scores pairs.

    The older form of the pooling's configuration is written, because every version of
    sentence-transformers and text-embeddings-inference reads it. Mean pooling is used
    if the pooling is unknown.
    """
    length = text.max_seq_length or config.max_position_embeddings
    # The tokenizer lowercases; this option would lowercase the text before it.
    options: dict[str, Any] = {"max_seq_length": length, "do_lower_case": False}
    settings: dict[str, Any] = {
        "prompts": dict(text.prompts),
        "default_prompt_name": text.default_prompt_name,
    }
    classes = {"": "Transformer"}
    if is_ranker:
        options["transformer_task"] = _RANKER_TASK
        settings["model_type"] = "CrossEncoder"
        settings["activation_fn"] = activation_class(text)
    else:
        classes[_POOLING] = "Pooling"
        settings["similarity_fn_name"] = text.similarity or text_encoding.COSINE
        modes = {
            flag: kind == (text.pooling or "mean") for kind, flag in _FLAGS.items()
        }
        companion_files.write_json(
            os.path.join(folder, _POOLING, _POOLING_CONFIG),
            {"word_embedding_dimension": config.hidden_size, **modes},
        )
    if text.normalize and not is_ranker:
        classes[_NORMALIZE] = "Normalize"
        files.make_folders(os.path.join(folder, _NORMALIZE))
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"{_CLASSES}.{name}"}
        for i, (path, name) in enumerate(classes.items())
    ]
    contents = {_MODULES: modules, _OPTIONS: options, _SETTINGS: settings}
    for name, values in contents.items():
        companion_files.write_json(os.path.join(folder, name), values)


def activation_class(text: text_encoding.TextEncoding) -> str:
    """Returns the name of the torch class for an output activation."""
    return _ACTIVATION_CLASSES[text.output_activation or numerics.IDENTITY]


def _modules(folder: str) -> dict[str, str]:
    """Returns {class: folder} of a sentence encoder's modules."""
    path = os.path.join(folder, _MODULES)
    if not files.exists(path):
        folders = filter(_MODULE_FOLDER.fullmatch, files.list_folder(folder))
        if first := min(folders, default=None):
            raise ValueError(
                f"{folder} has the module {first}, but no {_MODULES}, which "
                f"says how it is used; {hugging_face_config.COPY_AGAIN}, or without "
                "the modules to use the encoder alone."
            )
        return {}
    with files.open_file(path, "rb") as file:
        listed = files.parse_json(
            file.read(), path, advice=hugging_face_config.COPY_AGAIN
        )
    try:
        types = [str(module["type"]) for module in listed]
        paths = [str(module["path"]) for module in listed]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected objects with type and path; "
            f"{hugging_face_config.COPY_AGAIN}."
        ) from error
    names = [one.rpartition(".")[2] for one in types]
    is_known = all(one.startswith(_PACKAGE) for one in types)
    if not is_known or names not in _SUPPORTED_MODULES or paths[0]:
        raise _unsupported(folder, _MODULES, f"the modules {', '.join(types)}")
    return dict(zip(names, paths, strict=True))


def _read_known(folder: str, name: str, shape: Any) -> dict[str, Any]:
    """Returns the values of a JSON file; refuses keys that `foreign_keys` lacks."""
    values = hugging_face_config.read_json(folder, name, shape)
    for key in foreign_keys.unknown_names(name, values):
        raise _unsupported(folder, name, f"{key} {values[key]!r:.60}")
    return values


def _pooling(folder: str, module: str, config: config_module.BertConfig) -> str:
    name = os.path.join(module, _POOLING_CONFIG)
    path = os.path.join(folder, name)
    values = files.read_json(path, advice=hugging_face_config.COPY_AGAIN)
    chosen = values.get("pooling_mode")
    if chosen is None:
        flags = [key for key, value in values.items() if value is True]
        kinds = {flag: kind for kind, flag in _FLAGS.items()}
        flags = [flag for flag in flags if flag.startswith(_FLAG_START)]
        # As the library does if no flag is set.
        chosen = [kinds.get(flag, flag) for flag in flags] or ["mean"]
    chosen = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(chosen, list) or len(chosen) != 1 or chosen[0] not in [*_FLAGS]:
        raise _unsupported(folder, name, f"the pooling {chosen!r:.90}")
    for key in foreign_keys.unknown_names("1_Pooling/config.json", values):
        raise _unsupported(folder, name, f"{key} {values[key]!r:.60}")
    if values.get("include_prompt") is False:
        raise _unsupported(folder, name, "a pooling that leaves out the prompt")
    sizes = (values.get("embedding_dimension"), values.get("word_embedding_dimension"))
    if config.hidden_size not in sizes:
        raise ValueError(
            f"{path} is for vectors of {sizes[0] or sizes[1]} numbers, but the encoder "
            f"computes {config.hidden_size}; {hugging_face_config.COPY_AGAIN}."
        )
    return chosen[0]


def _check_normalize(folder: str, module: str) -> None:
    """Checks that Normalize is applied to the vector. Its file is new in version 6."""
    name = os.path.join(module, _POOLING_CONFIG)
    values = hugging_face_config.read_json(folder, name)
    for key in ("module_input_name", "module_output_name"):
        if values.get(key, _VECTOR_NAME) not in (_VECTOR_NAME, None):
            raise _unsupported(folder, name, f"{key} {values[key]!r:.60}")


def _activation(
    folder: str,
    settings: Mapping[str, Any],
    described: hugging_face_config.Description,
) -> str | None:
    """Returns the activation of a ranker; None for any other classifier."""
    stated = settings.get("activation_fn") or described.activation_class
    if stated is None:
        # The default of transformers and sentence-transformers for one output.
        is_ranker = described.num_labels == 1 and described.label_kind is None
        return numerics.SIGMOID if is_ranker else None
    is_torch = isinstance(stated, str) and stated.startswith("torch.")
    name = stated.rpartition(".")[2].lower() if is_torch else None
    if name not in numerics.OUTPUT_ACTIVATIONS:
        raise _unsupported(folder, _SETTINGS, f"the activation {stated!r:.90}")
    return name


def _is_length(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 3)


def _unsupported(folder: str, name: str, what: str) -> ValueError:
    return ValueError(
        f"{os.path.join(folder, name)} has {what}, which bert_tf does not support: "
        "vectors or scores would be different. Supported are Transformer, Pooling "
        f"({', '.join(_FLAGS)}; with the prompt), Normalize, and rankers with the "
        f"activation Identity or Sigmoid; without {_MODULES} and module folders, it is "
        "the encoder alone."
    )
