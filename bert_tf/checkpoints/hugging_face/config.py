"""Reads and writes config.json of a Hugging Face folder."""

import dataclasses
import json
import os
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import foreign_keys
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.modeling import config as config_module

NAME = "config.json"
# Advice about a damaged file that another program wrote.
COPY_AGAIN = "copy it again"
# Hugging Face's activation -> ours. Its "gelu" is the exact form. Ours is the release's
# tanh form, which Hugging Face offers under several names.
_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_python_tanh": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
# Ours -> Hugging Face's, if the same function has another name there.
_ACTIVATIONS_BACK = {"gelu": "gelu_new", "gelu_erf": "gelu"}
# Label kind -> Hugging Face's problem_type, which selects its loss and pipeline.
_PROBLEM_TYPES = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}
_LABEL_KINDS = {word: kind for kind, word in _PROBLEM_TYPES.items()}
# Keys whose values are listed, and keys that must not be set, with the reason.
_CHOICES: Mapping[str, list[str | None]] = {
    "hidden_act": [*_ACTIVATIONS],
    "problem_type": [*_LABEL_KINDS, None],
    "position_embedding_type": ["absolute", None],
}
_REFUSED = {
    "is_decoder": "an encoder also attends to the words on the right",
    "add_cross_attention": "an encoder attends only to its own text",
    "pruned_heads": "all layers must have the same number of heads",
    "quantization_config": (
        "weights must be floating-point numbers; use the model before quantization"
    ),
}
# Fields that both have, with the same defaults.
_SHARED_FIELDS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "initializer_range",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """The content of a BERT's config.json."""

    config: config_module.BertConfig
    class_name: str  # Class of transformers, such as "BertForMaskedLM".
    kind: str | None  # Kind of head of that class; None: unknown class.
    labels: tuple[str, ...] | None  # None: none, or only LABEL_0, LABEL_1, ...
    label_kind: str | None = None  # Of a classifier; None: not stated.
    # Whether masked words are predicted with the table of the word embeddings.
    ties_word_embeddings: bool = True
    num_labels: int | None = None  # None: not stated.
    # Only for a ranker that sentence-transformers 3 to 5 wrote.
    activation_class: str | None = None
    warnings: tuple[str, ...] = ()


def read_json(folder: str, name: str, shape: Any = None) -> dict[str, Any]:
    """Returns the values of a folder's JSON file, empty if it has none."""
    path = os.path.join(folder, name)
    if not files.exists(path):
        return {}
    return files.read_json(path, advice=COPY_AGAIN, shape=shape)


def read(folder: str) -> Description:
    """Returns the `Description` of a folder's config.json."""
    path = os.path.join(folder, NAME)
    values = files.read_json(path, advice=COPY_AGAIN)
    _check(values, path)
    fields = {field: values[field] for field in _SHARED_FIELDS if field in values}
    fields["hidden_act"] = _ACTIVATIONS[values.get("hidden_act", "gelu")]
    fields["layer_norm_epsilon"] = values.get("layer_norm_eps", 1e-12)
    try:
        config = config_module.BertConfig.from_dict(fields)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    id2label, num_labels = values.get("id2label"), values.get("num_labels")
    ranker = values.get("sentence_transformers")
    ranker = ranker if isinstance(ranker, dict) else {}
    heads = checkpoint_heads.HEADS
    kinds = {row.hugging_face_class: kind for kind, row in heads.items()}
    class_name = _class_name(values) or heads["encoder"].hugging_face_class
    return Description(
        config=config,
        class_name=class_name,
        kind=kinds.get(class_name),
        labels=_labels(values, path),
        label_kind=_LABEL_KINDS.get(values.get("problem_type") or ""),
        ties_word_embeddings=values.get("tie_word_embeddings", True) is not False,
        # Usually stated as the names of the labels.
        num_labels=len(id2label) if isinstance(id2label, dict) else num_labels,
        activation_class=ranker.get("activation_fn")
        or values.get("sbert_ce_default_activation_function"),
        warnings=tuple(_warnings(values)),
    )


def to_dict(
    config: config_module.BertConfig, head: checkpoint_heads.Head, pad_id: int
) -> dict[str, Any]:
    """Returns the content of a config.json; `pad_id` is the id of [PAD]."""
    values: dict[str, Any] = {
        "architectures": [head.row.hugging_face_class],
        "model_type": "bert",
        **{field: getattr(config, field) for field in _SHARED_FIELDS},
        "hidden_act": _ACTIVATIONS_BACK.get(config.hidden_act, config.hidden_act),
        "layer_norm_eps": config.layer_norm_epsilon,
        "pad_token_id": pad_id,
        "position_embedding_type": "absolute",
        "classifier_dropout": None,
        "use_cache": True,
    }
    if head.num_labels is not None:
        labels = head.labels or [f"LABEL_{i}" for i in range(head.num_labels)]
        values["id2label"] = {str(i): label for i, label in enumerate(labels)}
        values["label2id"] = {label: i for i, label in enumerate(labels)}
    if head.label_kind != checkpoint_heads.SINGLE_LABEL:
        values["problem_type"] = _PROBLEM_TYPES[head.label_kind]
    return values


def _warnings(values: Mapping[str, Any]) -> Iterator[str]:
    code = values.get("auto_map")
    if isinstance(code, dict):
        code = ", ".join(f"{name}: {module}" for name, module in code.items())
    if code:
        yield (
            f"{NAME} names custom code ({code}), which bert_tf does not run: it "
            "computes what BERT computes."
        )
    yield from foreign_keys.unknown_keys(NAME, values)


def _class_name(values: Mapping[str, Any]) -> str | None:
    classes = values.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes else None
    return first if isinstance(first, str) else None


def _check(values: Mapping[str, Any], path: str) -> None:
    """Refuses other architectures and unsupported variants."""
    model_type, class_name = values.get("model_type"), _class_name(values)
    # Folders written in 2018 and 2019 have no model_type.
    is_old = model_type is None and (class_name or "Bert").startswith("Bert")
    if model_type != "bert" and not is_old:
        raise ValueError(
            f"{path} has the model_type {model_type} and the class {class_name}, which "
            "is not BERT: its layers or inputs differ; pass a folder whose model_type "
            "is bert."
        )
    for key, reason in _REFUSED.items():
        if values.get(key):
            raise ValueError(
                f"{path} has {key} {json.dumps(values[key])}, a BERT variant that "
                f"bert_tf does not support: {reason}."
            )
    for key, choices in _CHOICES.items():
        if key in values and values[key] not in choices:
            raise ValueError(
                f"{path} has {key} {json.dumps(values[key])}, which bert_tf does not "
                f"support; expected one of {', '.join(filter(None, choices))}."
            )


def _labels(values: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    id2label = values.get("id2label")
    if not id2label:
        return None
    try:
        by_id = {int(number): label for number, label in id2label.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f'{path}: id2label must have the form {{"0": "name", ...}}.'
        ) from error
    if sorted(by_id) != list(range(len(by_id))):
        raise ValueError(
            f"{path}: id2label has the ids {sorted(by_id)}, expected 0 to "
            f"{len(by_id) - 1}."
        )
    labels = tuple(str(by_id[index]) for index in range(len(by_id)))
    is_default = labels == tuple(f"LABEL_{index}" for index in range(len(labels)))
    return None if is_default else labels
