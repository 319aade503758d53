"""config.json of a Hugging Face folder, both ways."""

import dataclasses
import json
import os

from bert_tf import files
from bert_tf.checkpoints.hugging_face import names
from bert_tf.modeling import config as config_module

NAME = "config.json"
# What those call themselves whose layers or inputs are not BERT's.
_OTHERS = {
    "albert": "ALBERT",
    "bart": "BART",
    "camembert": "CamemBERT",
    "convbert": "ConvBERT",
    "deberta": "DeBERTa",
    "deberta-v2": "DeBERTa",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "ernie": "ERNIE",
    "gpt2": "GPT-2",
    "mobilebert": "MobileBERT",
    "modernbert": "ModernBERT",
    "mpnet": "MPNet",
    "nomic_bert": "Nomic BERT",
    "roberta": "RoBERTa",
    "t5": "T5",
    "xlm-roberta": "XLM-RoBERTa",
}
# Hugging Face's activation -> ours. Its "gelu" is exact, ours is the release's tanh
# form, which it has under several names.
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
_ACTIVATIONS_BACK = {
    "gelu": "gelu_new",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_pytorch_tanh",
    "gelu_erf": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
# What a label is -> Hugging Face's word for it: what its losses and pipelines go by.
_PROBLEM_TYPES = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}
# Fields of both; their defaults are the same there.
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
    """What a config.json says of a BERT."""

    config: config_module.BertConfig
    class_name: str  # Class of transformers, such as "BertForMaskedLM".
    kind: str | None  # Kind of head of that class; None: a class not known here.
    labels: tuple[str, ...] | None  # None: none, or LABEL_0, LABEL_1, ...
    label_kind: str | None = None  # Of a classifier; None: not said.


def read(folder):
    """Returns the `Description` of a folder's config.json.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is no JSON object, describes another architecture than BERT or
            a BERT that computes otherwise, or a value is out of its range.
    """
    path = os.path.join(folder, NAME)
    values = read_json(path)
    _check_architecture(values, path)
    _check_variant(values, path)
    fields = {field: values[field] for field in _SHARED_FIELDS if field in values}
    fields["hidden_act"] = _activation(values.get("hidden_act", "gelu"), path)
    fields["layer_norm_epsilon"] = values.get("layer_norm_eps", 1e-12)
    try:
        config = config_module.BertConfig.from_dict(fields)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    class_name = _class_name(values) or names.CLASSES["encoder"]
    kinds = {name: kind for kind, name in names.CLASSES.items()}
    return Description(
        config=config,
        class_name=class_name,
        kind=kinds.get(class_name),
        labels=_labels(values, path),
        label_kind=_label_kind(values, path),
    )


def read_json(path):
    """Returns the object in a JSON file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not JSON, or no object.
    """
    with files.open_file(path, "rb") as file:
        text = file.read()
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}; copy it again.") from error
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} holds a JSON {type(values).__name__}, expected an object."
        )
    return values


def to_dict(config, head, pad_id):
    """Returns the values of a config.json.

    Args:
        config: BertConfig.
        head: `Head`.
        pad_id: id of [PAD].
    """
    values = {
        "architectures": [names.CLASSES[head.kind]],
        "model_type": "bert",
        **{field: getattr(config, field) for field in _SHARED_FIELDS},
        "hidden_act": _ACTIVATIONS_BACK[config.hidden_act],
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
    if head.label_kind != "single_label":
        values["problem_type"] = _PROBLEM_TYPES[head.label_kind]
    return values


def _class_name(values):
    classes = values.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes else None
    return first if isinstance(first, str) else None


def _check_architecture(values, path):
    kind, class_name = values.get("model_type"), _class_name(values)
    if kind == "bert":
        return
    # Folders of 2018 and 2019 have no model_type.
    if kind is None and (class_name is None or class_name.startswith("Bert")):
        return
    kind = str(kind or "")
    of_class = (class_name or "").split("For")[0].removesuffix("Model")
    found = _OTHERS.get(kind, kind) or of_class or "another architecture"
    said = [
        f"{key} {value}"
        for key, value in (("model_type", kind), ("architecture", class_name))
        if value
    ]
    raise ValueError(
        f"{path} describes {found} ({', '.join(said)}), which is not BERT: its layers "
        "or its inputs are others; give a folder whose model_type is bert."
    )


def _check_variant(values, path):
    refused = {
        "position_embedding_type": (
            values.get("position_embedding_type", "absolute") not in ("absolute", None),
            "positions are absolute here",
        ),
        "is_decoder": (
            bool(values.get("is_decoder")),
            "an encoder sees what is to its right",
        ),
        "add_cross_attention": (
            bool(values.get("add_cross_attention")),
            "an encoder looks at nothing but its own text",
        ),
        "pruned_heads": (
            bool(values.get("pruned_heads")),
            "all layers have the same number of heads here",
        ),
        "quantization_config": (
            bool(values.get("quantization_config")),
            "weights are floating-point numbers here; take the model that was not "
            "quantized",
        ),
    }
    for key, (is_refused, reason) in refused.items():
        if is_refused:
            raise ValueError(
                f"{path} has {key} {json.dumps(values[key])}, a BERT that bert_tf "
                f"does not compute: {reason}."
            )


def _activation(name, path):
    if not isinstance(name, str) or name not in _ACTIVATIONS:
        raise ValueError(
            f"{path} has hidden_act {json.dumps(name)}, which bert_tf does not "
            f"compute; it reads {', '.join(_ACTIVATIONS)}."
        )
    return _ACTIVATIONS[name]


def _label_kind(values, path):
    problem_type = values.get("problem_type")
    if problem_type is None:
        return None
    kinds = {word: kind for kind, word in _PROBLEM_TYPES.items()}
    if problem_type not in list(kinds):  # It may be no text.
        raise ValueError(
            f"{path} has problem_type {json.dumps(problem_type)}, expected one of "
            f"{', '.join(kinds)}; correct or remove it."
        )
    return kinds[problem_type]


def _labels(values, path):
    id2label = values.get("id2label")
    if not id2label:
        return None
    try:
        by_id = {int(number): label for number, label in id2label.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f'{path}: id2label is not of the form {{"0": "name", ...}}.'
        ) from error
    if sorted(by_id) != list(range(len(by_id))):
        raise ValueError(
            f"{path}: id2label has the ids {sorted(by_id)}, expected 0 to "
            f"{len(by_id) - 1}."
        )
    labels = tuple(str(by_id[index]) for index in range(len(by_id)))
    is_default = labels == tuple(f"LABEL_{index}" for index in range(len(labels)))
    return None if is_default else labels
