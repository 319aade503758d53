"""A model and its tokenizer from one call."""

import inspect
import logging
import os
from typing import Any

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.modeling import pretrained_model
from bert_tf.modeling import rankers
from bert_tf.preprocessing import tokenizer as tokenizer_module

logger = logging.getLogger(__name__)


def from_pretrained(
    path: str | os.PathLike[str],
    *,
    head: str | type | None = None,
    **kwargs: Any,
) -> tuple[Any, tokenizer_module.FullTokenizer]:
    """Returns the model of a checkpoint and the tokenizer that belongs to it.

    Args:
        path: a checkpoint of any format: a folder, a file, the folder of a run or the
            name of a model, as for `bert_tf.load_checkpoint`.
        head: the kind of head to keep, a key of `checkpoints.heads.HEADS`: "encoder"
            for a `BertModel`; or the right one of several kinds, if the checkpoint does
            not say which it has; or a class, as in its `from_pretrained`. None: the
            checkpoint's.
        **kwargs: `name` and `dtype`, as for every Keras model; `num_labels`, beside
            `head`, for a head of that size, newly initialized if the checkpoint has
            none; and `preprocessor`; by default the model takes texts with the
            preprocessor that a `.keras` file contains, or else with the tokenizer.

    Returns:
        The model (`BertClassifier` for a classifier's checkpoint, `BertModel` for an
        encoder's, and so on) and a `FullTokenizer`.

    Raises:
        OSError: there is no such checkpoint, or it cannot be read.
        ValueError: the configuration, the vocabulary, the head or a weight is missing,
            or a file is damaged.
        ImportError: the format needs a package that is not installed.

    Example:
        model, tokenizer = bert_tf.from_pretrained("bert-base-uncased", head="encoder")
        outputs = model(tokenizer(["The cat sat."]))
        outputs["sequence_output"]  # [1, 6, H]
    """
    source = formats.open_source(path)
    stored = source.arguments
    if isinstance(head, type):
        return _load(head, source, **kwargs)
    if head is not None:
        if head not in checkpoint_heads.HEADS:
            kinds = ", ".join(checkpoint_heads.KINDS)
            raise ValueError(f"head is {head!r}; expected one of {kinds}.")
        row = checkpoint_heads.HEADS[head]
        name = row.models[checkpoint_heads.SINGLE_LABEL]
        if row.has_labels and "num_labels" in kwargs:
            return _load(checkpoint_heads.model_class(name), source, **kwargs)
        new = "num_labels=..." if row.has_labels else f"head=bert_tf.{name}"
        advice = f" For a new head, pass {new}."
        source, _ = source.with_head(head, argument="head", advice=advice)
    tokenizer = tokenizer_module.FullTokenizer(source)
    kwargs = _with_preprocessor(kwargs, stored, tokenizer)
    return loading.model_of(source, **kwargs), tokenizer


def _with_preprocessor(kwargs, stored, tokenizer):
    """Returns arguments of a model that takes texts. Windows has no TF Text."""
    if tokenizer is None or os.name == "nt":
        return kwargs
    name = pretrained_model.PREPROCESSOR
    return {name: stored.get(name) or tokenizer, **kwargs}


def _load(
    model_class: Any, source: source_module.Source, **kwargs: Any
) -> tuple[Any, Any]:
    """Returns a model of any class with a checkpoint's weights, and its tokenizer.

    The head is that of the checkpoint, if kind and size are equal, or else new.
    """
    head = _head(model_class, source)
    tokenizer = None
    try:
        tokenizer = tokenizer_module.FullTokenizer(source)
    except ValueError as error:
        logger.info("There is no tokenizer: %s", error)
    kwargs = _with_preprocessor(kwargs, source.arguments, tokenizer)
    if head is not None:
        kwargs = {**head.row.arguments, **source.arguments, **kwargs}
    num_labels = inspect.signature(model_class).parameters.get("num_labels")
    if num_labels is not None:
        if head is not None:
            kwargs.setdefault("num_labels", head.num_labels)
        if "num_labels" not in kwargs and num_labels.default is num_labels.empty:
            raise ValueError(
                f"{source.path} has no head of a {model_class.__name__}; pass "
                "num_labels, the number of classes of a new one."
            )
    model = model_class(source.required_config(), **kwargs)
    model.build()
    variables = checkpoint_names.checkpoint_variables(model)
    shapes = {name: tuple(one.shape) for name, one in variables.items()}
    weights = source.without_weights(
        name
        for name, shape in source.shapes.items()
        if checkpoint_heads.is_head_weight(name)
        and (
            shapes.get(name) != tuple(shape)
            or (head is None and name in checkpoint_heads.OUTPUTS)
        )
    )
    report = loading.load_source(model, weights)
    new = [name for name in report.missing if checkpoint_heads.is_head_weight(name)]
    source.check_complete(set(report.missing) - set(new))
    if new:
        logger.warning(
            "%s has no head of this %s, so train the model before you use it. Newly "
            "initialized: %s.",
            source.path,
            model_class.__name__,
            ", ".join(report.missing),
        )
    loading.warn_of_pooler(model, report)
    return model, tokenizer


def _head(
    model_class: Any, source: source_module.Source
) -> checkpoint_heads.Head | None:
    """Returns the head of a checkpoint if it is one of the class, else None."""
    head, name = source.head, model_class.__name__
    if not head.is_known:  # Its weights fit several kinds.
        kinds = checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS
        named = (k for k in kinds if name in checkpoint_heads.HEADS[k].models.values())
        kind = next(named, head.kind)
        head = checkpoint_heads.head_of(source.shapes, kind=kind)
    is_score = head.label_kind == checkpoint_heads.REGRESSION
    is_cross_encoder = is_score and model_class is rankers.BertCrossEncoder
    is_same = head.row.models.get(head.label_kind) == name
    return head if is_same or is_cross_encoder else None
