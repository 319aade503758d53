"""The names of a BERT's weights in Hugging Face's folders, and their shapes.

The names follow from the release's by rule, heads apart. Dense kernels are stored the
other way round, [out, in]; the release's head weights [classes, H] are not.
"""

import re

# Kind of head -> class of transformers.
CLASSES = {
    "encoder": "BertModel",
    "pretraining": "BertForPreTraining",
    "masked_lm": "BertForMaskedLM",
    "classification": "BertForSequenceClassification",
    "question_answering": "BertForQuestionAnswering",
    "token_classification": "BertForTokenClassification",
    "multiple_choice": "BertForMultipleChoice",
}
# Kinds whose class of transformers has a pooler.
WITH_POOLER = ("encoder", "pretraining", "classification", "multiple_choice")

ENCODER_PREFIX = "bert."
# First parts of the encoder's names; alone, without the prefix, in a BertModel's file.
_ENCODER_PARTS = ("embeddings.", "encoder.", "pooler.")
# Tables of the release, whose names have no last part of their own.
_TABLE = re.compile(r"_embeddings$")
_LAYER = re.compile(r"/layer_(\d+)/")
_LAST_PARTS = {"kernel": "weight", "gamma": "weight", "beta": "bias"}
# Names in heads that follow no rule.
_HEAD_NAMES = {
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
}
# Numbers from 0 on that old folders hold beside the weights.
_BUFFERS = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")
# Second names of weights: the masked words' output table is the word embeddings.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def hugging_face_name(name):
    """Returns the name of a weight in Hugging Face's folders, with `bert.`.

    Args:
        name: the release's, such as "bert/encoder/layer_0/output/LayerNorm/gamma",
            which is "bert.encoder.layer.0.output.LayerNorm.weight" there.
    """
    if name in _HEAD_NAMES:
        return _HEAD_NAMES[name]
    if _TABLE.search(name):
        name = f"{name}/weight"
    above, _, last = _LAYER.sub(r"/layer/\1/", name).rpartition("/")
    return f"{above}/{_LAST_PARTS.get(last, last)}".replace("/", ".")


def normal_name(name):
    """Returns a name of any generation as transformers writes it today.

    Until 2019 the normalization's weights were gamma and beta; the file of a
    `BertModel` leaves `bert.` out.
    """
    name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
    name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
    return f"{ENCODER_PREFIX}{name}" if name.startswith(_ENCODER_PARTS) else name


def is_buffer(name):
    """Returns whether a tensor is no weight, and says nothing."""
    return _BUFFERS.search(name) is not None


def is_transposed(name):
    """Returns whether Hugging Face stores the weight of this release's name turned."""
    return name.endswith("/kernel")


def turned_shape(name, shape):
    """Returns a shape of the release's layout in Hugging Face's, and the other way.

    Args:
        name: the release's name of the weight.
        shape: sequence of int.
    """
    return tuple(reversed(shape)) if is_transposed(name) else tuple(shape)


def encoder_shapes(config):
    """Returns {release's name: shape} of an encoder's weights, the pooler's last."""
    hidden, wide = config.hidden_size, config.intermediate_size
    shapes = {
        "bert/embeddings/word_embeddings": (config.vocab_size, hidden),
        "bert/embeddings/token_type_embeddings": (config.type_vocab_size, hidden),
        "bert/embeddings/position_embeddings": (
            config.max_position_embeddings,
            hidden,
        ),
        **_normalization("bert/embeddings", hidden),
    }
    for index in range(config.num_hidden_layers):
        layer = f"bert/encoder/layer_{index}"
        for part in ("query", "key", "value"):
            shapes |= _dense(f"{layer}/attention/self/{part}", hidden, hidden)
        shapes |= _dense(f"{layer}/attention/output/dense", hidden, hidden)
        shapes |= _normalization(f"{layer}/attention/output", hidden)
        shapes |= _dense(f"{layer}/intermediate/dense", hidden, wide)
        shapes |= _dense(f"{layer}/output/dense", wide, hidden)
        shapes |= _normalization(f"{layer}/output", hidden)
    return shapes | pooler_shapes(config)


def pooler_shapes(config):
    """Returns {release's name: shape} of the pooler's weights."""
    return _dense("bert/pooler/dense", config.hidden_size, config.hidden_size)


def head_shapes(config, kind, num_labels=None):
    """Returns {release's name: shape} of the weights of a kind of head.

    Args:
        config: BertConfig.
        kind: one of `CLASSES`.
        num_labels: of the kinds that have labels; None leaves them out of the shape,
            which then cannot be compared.
    """
    hidden = config.hidden_size
    masked_lm = {
        "cls/predictions/output_bias": (config.vocab_size,),
        **_dense("cls/predictions/transform/dense", hidden, hidden),
        **_normalization("cls/predictions/transform", hidden),
    }
    return {
        "encoder": {},
        "masked_lm": masked_lm,
        "pretraining": masked_lm | _output("cls/seq_relationship/", 2, hidden),
        "question_answering": _output("cls/squad/", 2, hidden),
        "classification": _output("", num_labels, hidden),
        "token_classification": _output("", num_labels, hidden),
        "multiple_choice": _output("", 1, hidden),
    }[kind]


def all_names(config):
    """Returns the release's names of an encoder and of every kind of head."""
    heads = [name for kind in CLASSES for name in head_shapes(config, kind)]
    return list(dict.fromkeys([*encoder_shapes(config), *heads]))


def _dense(name, width_in, width_out):
    return {f"{name}/kernel": (width_in, width_out), f"{name}/bias": (width_out,)}


def _normalization(name, width):
    return {f"{name}/LayerNorm/gamma": (width,), f"{name}/LayerNorm/beta": (width,)}


def _output(scope, num_classes, hidden):
    return {
        f"{scope}output_weights": (num_classes, hidden),
        f"{scope}output_bias": (num_classes,),
    }
