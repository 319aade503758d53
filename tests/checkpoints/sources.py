"""Opened checkpoints in memory: what any reader could have made of some weights."""

import dataclasses

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.tokenization import vocabulary as vocabulary_module
from tests.modeling import small_config

TOKENS = (*vocabulary_module.SPECIAL_TOKENS, *"abcdä", "\u2028", "##b")
CONFIG = small_config.create(vocab_size=len(TOKENS), num_hidden_layers=2)
_LABELS = ("no", "perhaps", "ja")


def head_of_kind(kind, label_kind="single_label"):
    """Returns a head with three named labels, or one number for a regression."""
    num_labels, labels = None, None
    if checkpoint_heads.HEADS[kind].has_labels:
        labels = _LABELS[: 1 if label_kind == "regression" else None]
        num_labels = len(labels)
    return checkpoint_heads.Head(
        kind=kind, num_labels=num_labels, labels=labels, label_kind=label_kind
    )


def create(
    kind="encoder", label_kind="single_label", *, sizes=CONFIG, tokens=TOKENS, **changes
):
    """Returns the `Source` of a model none of whose weights are alike.

    `changes` replaces some of its fields afterwards.
    """
    head = head_of_kind(kind, label_kind)
    shapes = checkpoint_names.encoder_shapes(sizes)
    shapes |= checkpoint_heads.head_shapes(sizes, kind, head.num_labels)
    draws = np.random.default_rng(3)
    arrays = {
        name: draws.normal(name.endswith("gamma"), 0.3, shape).astype("float32")
        for name, shape in shapes.items()
    }
    source = source_module.Source(
        path="elsewhere",
        format="model_garden",
        shapes=shapes,
        read_each=lambda wanted: ((name, arrays[name]) for name in wanted),
        head=head,
        config=sizes,
        text=text_encoding.TextEncoding(
            vocabulary=vocabulary_module.Vocabulary(tokens), do_lower_case=True
        ),
    )
    return dataclasses.replace(source, **changes)


def arrays_of(source):
    """Returns {name: array} of all weights."""
    return dict(source.read_each(source.shapes))
