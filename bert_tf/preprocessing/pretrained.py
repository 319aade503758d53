"""A model and its tokenizer from one call."""

import os
from typing import Any

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import loading
from bert_tf.preprocessing import tokenizer as tokenizer_module


def from_pretrained(
    path: str | os.PathLike[str],
    *,
    head: str | None = None,
    **kwargs: Any,
) -> tuple[Any, tokenizer_module.FullTokenizer]:
    """Returns the model of a checkpoint and the tokenizer that belongs to it.

    Args:
        path: a checkpoint of any format: a folder, a file, the folder of a run or the
            name of a model, as for `bert_tf.load_checkpoint`.
        head: the kind of head to keep, a key of `checkpoints.heads.HEADS`: "encoder"
            for a `BertModel`; or the right one of several kinds, if the checkpoint does
            not say which it has. None: the checkpoint's.
        **kwargs: `name` and `dtype`, as for every Keras model.

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
    if head is not None:
        if head not in checkpoint_heads.HEADS:
            kinds = ", ".join(checkpoint_heads.KINDS)
            raise ValueError(f"head is {head!r}; expected one of {kinds}.")
        source, _ = source.with_head(head, argument="head")
    tokenizer = tokenizer_module.FullTokenizer(source)
    return loading.model_of(source, **kwargs), tokenizer
