"""The format "keras_hub": presets of BERT, with an encoder and possibly a classifier.

`config.json` has the sizes, `model.weights.h5` the encoder, `task.json` and
`task.weights.h5` the head, `tokenizer.json` and `assets/` the vocabulary. The JSON
files are read as data: of the classes that they name, only BERT's own are created.

KerasHub's masked-word head is neither read nor written: it computes exact GELU and
a different epsilon on top of a tanh-GELU encoder, and a bert_config.json has one
activation and one epsilon, so the converted head would silently compute something
different. The encoder of such a preset can be read.
"""

import os
import warnings
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf import machine
from bert_tf.checkpoints import foreign_keys
from bert_tf.checkpoints import hdf5
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics
from bert_tf.modeling import pooling as pooling_module
from bert_tf.tokenization import vocabulary as vocabulary_module

_CONFIG_FILE = "config.json"
_WEIGHTS_FILE = "model.weights.h5"
_TASK_FILE = "task.json"
_TASK_WEIGHTS_FILE = "task.weights.h5"
_TOKENIZER_FILE = "tokenizer.json"
_PREPROCESSOR_FILE = "preprocessor.json"
_MAX_REASON = 300
_VOCAB_FILE = os.path.join("assets", "tokenizer", "vocabulary.txt")
# Field of a BertConfig -> KerasHub's name for it.
_FIELDS = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "attention_probs_dropout_prob": "dropout",
    "hidden_dropout_prob": "dropout",  # Which is written.
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}
# What KerasHub's BERT computes, regardless of its configuration.
_ACTIVATION = "gelu"
_EPSILON = 1e-12
# The one head that both packages have, and KerasHub's class for it; the name of that
# class in older versions.
_HEAD_KIND = kinds.Head.CLASSIFICATION
_CLASSIFIER = "BertTextClassifier"
_OLD_CLASSIFIER = "BertClassifier"
_EMBEDDER = "BertTextEmbedder"  # Has no weights of its own.
# Activation of its output layer -> our kind of label, for several outputs and for one.
_LABEL_KINDS = {
    "linear": checkpoint_heads.SINGLE_LABEL,
    "softmax": checkpoint_heads.SINGLE_LABEL,
    "sigmoid": checkpoint_heads.MULTI_LABEL,
}
_LABEL_KINDS_OF_ONE = {
    "linear": checkpoint_heads.REGRESSION,
    "sigmoid": checkpoint_heads.MULTI_LABEL,
}
# Fields of `TextEncoding` that a preset stores, besides vocabulary and casing.
_STORED_FIELDS = ("strip_accents",)
_LENGTH = ("max_seq_length", _HEAD_KIND)  # The preprocessor of a classifier has it.

_PLACES = {
    "bert/embeddings/word_embeddings": "token_embedding/embeddings",
    "bert/embeddings/position_embeddings": "position_embedding/embeddings",
    "bert/embeddings/token_type_embeddings": "segment_embedding/embeddings",
    "bert/embeddings/LayerNorm/gamma": "embeddings_layer_norm/gamma",
    "bert/embeddings/LayerNorm/beta": "embeddings_layer_norm/beta",
    "bert/pooler/dense/kernel": "pooled_dense/kernel",
    "bert/pooler/dense/bias": "pooled_dense/bias",
}
_LAYER_PARTS = {
    "attention/self/query": "self_attention_layer/query",
    "attention/self/key": "self_attention_layer/key",
    "attention/self/value": "self_attention_layer/value",
    "attention/output/dense": "self_attention_layer/attention_output",
    "intermediate/dense": "feedforward_intermediate_dense",
    "output/dense": "feedforward_output_dense",
    "attention/output/LayerNorm": "self_attention_layer_norm",
    "output/LayerNorm": "feedforward_layer_norm",
}
_CLASSIFIER_PLACES = {
    checkpoint_heads.OUTPUT_WEIGHTS: "logits/kernel",
    checkpoint_heads.OUTPUT_BIAS: "logits/bias",
}


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is the folder of a preset, of BERT or another model."""
    path = os.fspath(path)
    config_file = os.path.join(path, _CONFIG_FILE)
    if not files.exists(config_file):
        return False
    try:
        return "registered_name" in files.read_json(config_file)
    except (OSError, ValueError):  # Most likely a damaged preset.
        return files.exists(os.path.join(path, _WEIGHTS_FILE))


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a preset's folder."""
    path = os.fspath(path)
    described = files.read_json(os.path.join(path, _CONFIG_FILE))
    if described.get("class_name") != "BertBackbone":
        raise ValueError(
            f"{path} is a KerasHub preset of {described.get('class_name')}, a "
            "different architecture; expected a preset of BertBackbone."
        )
    _library()
    config = _config(described, path)
    task = _read_object(path, _TASK_FILE)
    head, unread_head = _head(path, task)
    weights_files = [_WEIGHTS_FILE]
    if head.kind != "encoder":
        weights_files.append(_TASK_WEIGHTS_FILE)
    for name in weights_files:
        with hdf5.opened(os.path.join(path, name)):
            pass  # It is complete. Checked before any model is created.
    settings = {
        _CONFIG_FILE: {**described, **described["config"]},
        _TASK_FILE: _settings(task),
        _TOKENIZER_FILE: _settings(_read_object(path, _TOKENIZER_FILE)),
        _PREPROCESSOR_FILE: _settings(_read_object(path, _PREPROCESSOR_FILE)),
    }
    text = _text(path, settings, config, head)
    is_read = not task or head.kind == _HEAD_KIND or unread_head or text.pooling
    note = f"{_TASK_FILE} has no weights of a head, so only the encoder is read"
    shapes = checkpoint_names.encoder_shapes(config)
    shapes |= checkpoint_heads.head_shapes(config, head.kind, head.num_labels)
    return source_module.Source(
        path=path,
        format="keras_hub",
        shapes=shapes,
        read_each=lambda wanted: _read_each(path, config, head, shapes, wanted),
        head=head,
        config=config,
        text=text,
        unread_head=unread_head,
        notes=() if is_read else (note,),
        warnings=tuple(
            sentence
            for name, values in settings.items()
            for sentence in foreign_keys.report(f"KerasHub {name}", values)
        ),
    )


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a `Source`; KerasHub need not be installed."""
    num_layers = 0 if source.config is None else source.config.num_hidden_layers
    places = _places(num_layers, source.head.kind)
    return source_module.Placement(
        places={name: places[name] for name in source.shapes if name in places},
        changes=() if source.config is None else tuple(_changes(source.config)),
        unsaid=tuple(
            name
            for name in source.text.stated()
            if name not in _STORED_FIELDS and (name, source.head.kind) != _LENGTH
        ),
    )


def write(source: source_module.Source, folder: str) -> None:
    """Writes a preset into a folder.

    A missing pooler is written as zeros, and a head other than a classifier's is left
    out. If the tokenizer lowercases, it also strips accents, as in 2018.
    """
    config, tokenizer = source.required_config(), _tokenizer(source)
    head = source.head
    if head.kind != _HEAD_KIND:
        head = checkpoint_heads.Head(kind="encoder")
    if head.label_kind == checkpoint_heads.REGRESSION and head.num_labels != 1:
        raise ValueError(
            f"KerasHub cannot record that {head.num_labels} outputs are numbers, not "
            "classes; use the format bert, hugging_face or keras."
        )
    length = source.text.max_seq_length or config.max_position_embeddings
    model = _create(config, head, tokenizer=tokenizer, length=length)
    variables = _variables(model, config, head)
    missing = sorted(set(variables) - set(source.shapes))
    source.check_complete(missing)
    for name in missing:
        variables[name].assign(np.zeros(variables[name].shape, "float32"))
    for name, array in source.read_each([n for n in source.shapes if n in variables]):
        array = array.T if name == checkpoint_heads.OUTPUT_WEIGHTS else array
        variables[name].assign(np.reshape(array, tuple(variables[name].shape)))
    model.save_to_preset(folder)
    if head.kind == "encoder" and tokenizer is not None:
        tokenizer.save_to_preset(folder)


def _library() -> Any:
    return machine.package(
        "keras_hub", extra="keras-hub", needed_for="A KerasHub preset"
    )


def _config(described: Mapping[str, Any], path: str) -> config_module.BertConfig:
    config_file = os.path.join(path, _CONFIG_FILE)
    values = _settings(described)
    missing = [theirs for theirs in _FIELDS.values() if theirs not in values]
    if missing:
        raise ValueError(
            f"{config_file} has no {missing[0]} in its config; expected a file that "
            "KerasHub's save_to_preset wrote."
        )
    dtype = values.get("dtype")
    if isinstance(dtype, dict) and dtype.get("class_name") != "DTypePolicy":
        raise ValueError(
            f"{path} has weights of the dtype {dtype.get('class_name')}: it is "
            "quantized; pass the preset before quantization."
        )
    fields = {ours: values[theirs] for ours, theirs in _FIELDS.items()}
    fields |= {"hidden_act": _ACTIVATION, "layer_norm_epsilon": _EPSILON}
    try:
        return config_module.BertConfig.from_dict(fields)
    except ValueError as error:
        raise ValueError(f"{config_file}: {error}") from error


def _head(path: str, task: dict[str, Any]) -> tuple[checkpoint_heads.Head, str | None]:
    """Returns the `Head`, and what a head is called that is not read."""
    encoder = checkpoint_heads.Head(kind="encoder")
    name = task.get("class_name")
    has_weights = files.exists(os.path.join(path, _TASK_WEIGHTS_FILE))
    if not task or name == _EMBEDDER or not has_weights:
        return encoder, None
    if name not in (_CLASSIFIER, _OLD_CLASSIFIER):
        return encoder, str(name)
    values = _settings(task)
    num_labels, activation = values.get("num_classes"), values.get("activation")
    if not isinstance(num_labels, int) or num_labels < 1:
        raise ValueError(
            f"{os.path.join(path, _TASK_FILE)}: num_classes is {num_labels!r}, "
            "expected a positive integer."
        )
    by_name = _LABEL_KINDS if num_labels > 1 else _LABEL_KINDS_OF_ONE
    kind = by_name.get(activation) if isinstance(activation, str) else None
    if activation is not None and kind is None:
        outputs = f"{num_labels} outputs and the activation {activation!r:.60}"
        return encoder, f"{name} with {outputs}"
    return checkpoint_heads.Head(
        kind=_HEAD_KIND, num_labels=num_labels, label_kind=kind or by_name["linear"]
    ), None


def _text(
    path: str,
    settings: Mapping[str, Mapping[str, Any]],
    config: config_module.BertConfig,
    head: checkpoint_heads.Head,
) -> text_encoding.TextEncoding:
    vocab_file, vocabulary = os.path.join(path, _VOCAB_FILE), None
    if files.exists(vocab_file):
        vocabulary = vocabulary_module.Vocabulary.load(vocab_file)
    task, tokenizer = settings[_TASK_FILE], settings[_TOKENIZER_FILE]
    lowers, strips = None, None
    if isinstance(tokenizer.get("lowercase"), bool):
        lowers, strips = tokenizer["lowercase"], bool(tokenizer.get("strip_accents"))
    length = settings[_PREPROCESSOR_FILE].get("sequence_length")
    is_limit = isinstance(length, int) and length < config.max_position_embeddings
    pooling = task.get("pooling_mode")  # Of an embedder.
    if pooling is not None:
        pooling_module.check(str(pooling), config)
    is_of_texts = pooling is not None or head.kind == _HEAD_KIND
    return text_encoding.TextEncoding(
        vocabulary=vocabulary,
        do_lower_case=lowers,
        strip_accents=None if strips == lowers else strips,
        max_seq_length=length if is_limit and is_of_texts else None,
        pooling=pooling,
        normalize=task.get("normalize"),
    )


def _read_object(path: str, name: str) -> dict[str, Any]:
    """Returns the JSON object in a file of a preset; empty if there is no such file."""
    file = os.path.join(path, name)
    return files.read_json(file) if files.exists(file) else {}


def _settings(described: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the config of an object; empty if there is none."""
    values = described.get("config")
    return values if isinstance(values, dict) else {}


def _tokenizer(source: source_module.Source) -> Any:
    if source.vocabulary is None:
        return None
    for token in vocabulary_module.SPECIAL_TOKENS:
        if token not in source.vocabulary:
            raise ValueError(
                f"The vocabulary has no {token}, which KerasHub's BertTokenizer "
                "needs; use another --target_format."
            )
    # Unknown casing means the release's default.
    is_lower, strips = source.do_lower_case is not False, source.text.strip_accents
    return _library().models.BertTokenizer(
        vocabulary=list(source.vocabulary.tokens),
        lowercase=is_lower,
        strip_accents=is_lower if strips is None else strips,
    )


def _places(num_layers: int, kind: str) -> dict[str, str]:
    """Returns {release's name: KerasHub's name} of a model.

    For a kind of head that KerasHub lacks, only the encoder's names are returned.
    """
    places = dict(_PLACES)
    for number in range(num_layers):
        ours, theirs = f"bert/encoder/layer_{number}", f"transformer_layer_{number}"
        for part, place in _LAYER_PARTS.items():
            ends = ("gamma", "beta") if part.endswith("Norm") else ("kernel", "bias")
            places |= {f"{ours}/{part}/{e}": f"{theirs}/{place}/{e}" for e in ends}
    return places | (_CLASSIFIER_PLACES if kind == _HEAD_KIND else {})


def _create(
    config: config_module.BertConfig,
    head: checkpoint_heads.Head,
    *,
    tokenizer: Any = None,
    length: int | None = None,
) -> Any:
    """Returns KerasHub's model, newly initialized, with a preprocessor if possible."""
    models = _library().models
    sizes = {theirs: getattr(config, ours) for ours, theirs in _FIELDS.items()}
    backbone = models.BertBackbone(**sizes, dtype="float32")
    if head.kind == "encoder":
        return backbone
    task = getattr(models, _CLASSIFIER)
    arguments: dict[str, Any] = {"num_classes": head.num_labels}
    if head.label_kind == checkpoint_heads.MULTI_LABEL:
        arguments["activation"] = "sigmoid"
    if tokenizer is not None:
        preprocessor = task.preprocessor_cls(tokenizer, sequence_length=length)
        arguments["preprocessor"] = preprocessor
    return task(backbone, **arguments)


def _variables(
    model: Any, config: config_module.BertConfig, head: checkpoint_heads.Head
) -> dict[str, Any]:
    """Returns {release's name: KerasHub's variable} of a model that `_create` made."""
    by_path = {variable.path: variable for variable in model.weights}
    places = _places(config.num_hidden_layers, head.kind)
    unknown = [path for path in places.values() if path not in by_path]
    if unknown:
        raise ValueError(
            f"keras-hub {_library().__version__} has no variable {unknown[0]}; install "
            "keras-hub 0.32, which has it."
        )
    return {name: by_path[path] for name, path in places.items()}


def _read_each(
    path: str,
    config: config_module.BertConfig,
    head: checkpoint_heads.Head,
    shapes: Mapping[str, checkpoint_names.Shape],
    wanted: Iterable[str],
) -> Iterator[tuple[str, np.ndarray]]:
    model = _create(config, head)
    with warnings.catch_warnings():
        # Keras warns about missing layers and leaves them newly initialized.
        warnings.filterwarnings("error", "Skipping nested container")
        # A model saved during training has slots, which are not needed here.
        warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
        try:
            backbone = model if head.kind == "encoder" else model.backbone
            backbone.load_weights(os.path.join(path, _WEIGHTS_FILE))
            if head.kind != "encoder":
                model.load_task_weights(os.path.join(path, _TASK_WEIGHTS_FILE))
        except (ValueError, KeyError, OSError, RuntimeError, UserWarning) as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            reason = " ".join(lines[:2]).strip().rstrip(".")[:_MAX_REASON]
            raise ValueError(
                f"The weights of {path} do not match its {_CONFIG_FILE}: {reason}."
            ) from error
    variables = _variables(model, config, head)
    for name in wanted:
        array = np.asarray(variables[name].numpy(), np.float32)
        # [C, H] in the release, the kernel [H, C] of a dense layer in KerasHub.
        array = array.T if name == checkpoint_heads.OUTPUT_WEIGHTS else array
        yield name, array.reshape(shapes[name])


def _changes(config: config_module.BertConfig) -> Iterator[str]:
    if numerics.activation(config.hidden_act) != numerics.activation(_ACTIVATION):
        yield f"KerasHub's encoder computes {_ACTIVATION}, not {config.hidden_act}"
    if (epsilon := config.layer_norm_epsilon) != _EPSILON:
        yield f"KerasHub's encoder adds {_EPSILON:g} to the variance, not {epsilon:g}"
    rates = config.hidden_dropout_prob, config.attention_probs_dropout_prob
    if rates[0] != rates[1]:
        yield (
            f"KerasHub has one dropout rate, {rates[0]:g}, which it also applies to "
            f"attention, where the source has {rates[1]:g}"
        )
