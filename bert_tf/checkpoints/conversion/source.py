"""What is converted: a source with what the flags say, and of which heads."""

import dataclasses

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import starting_point

_OUTPUT = (checkpoint_heads.OUTPUT_WEIGHTS, "output_bias")
# Kind of head -> what the names of its weights start with.
_NAMES = {
    "encoder": (),
    "pretraining": ("cls/predictions/", "cls/seq_relationship/"),
    "masked_lm": ("cls/predictions/",),
    "question_answering": ("cls/squad/",),
    **dict.fromkeys(checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS, _OUTPUT),
}


def open_source(options, *, progress):
    """Returns the `Source` of a conversion, with what its flags add.

    Raises:
        OSError, ValueError: it cannot be read, or what is given does not fit it.
    """
    source = formats.open_source(options.source, progress=progress)
    start = starting_point.of_source(
        source,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        needs_vocabulary=False,
    )
    known_casing = (source.do_lower_case, options.do_lower_case) != (None, None)
    return dataclasses.replace(
        source,
        config=start.config,
        vocabulary=start.vocabulary,
        do_lower_case=start.do_lower_case if known_casing else None,
    )


def is_head(name):
    """Returns whether a weight is a head's."""
    is_between = bool(checkpoint_heads.between([name]))
    return name.startswith("cls/") or name in _OUTPUT or is_between


def with_head(source, kind):
    """Returns a source with one head, and the names of other heads' weights.

    Args:
        source: `Source`.
        kind: of the head; None leaves everything.

    Raises:
        ValueError: the source has no such head, or one on layers that no format has.
    """
    between = checkpoint_heads.between((*source.shapes, *source.unmapped))
    if between and kind != "encoder":
        raise ValueError(
            f"{source.path} has a BiLSTM between encoder and head ({between[0]}), for "
            "which no format has a place; give --head=encoder for the encoder alone."
        )
    if kind is None:
        return source, ()
    for start in _NAMES[kind]:
        if not any(name.startswith(start) for name in source.shapes):
            raise ValueError(
                f"--head={kind}, but {source.path} has no {start.rstrip('/')}; its "
                f"head is {source.head.kind}."
            )
    is_other = source.head.is_known and source.head.kind != kind
    if _NAMES[kind] == _OUTPUT and is_other:
        raise ValueError(
            f"--head={kind}, but the head of {source.path} is {source.head.kind}."
        )
    removed = [
        name
        for name in source.shapes
        if is_head(name) and not name.startswith(_NAMES[kind])
    ]
    kept = without(source, removed)
    head = checkpoint_heads.head_of(
        kept.shapes,
        kind=kind,
        labels=source.head.labels if source.head.num_labels else None,
        label_kind=source.head.label_kind,
    )
    return dataclasses.replace(kept, head=head), tuple(removed)


def without(source, removed):
    """Returns a source without some weights, and with the head that is left."""
    removed = set(removed)
    if not removed:
        return source
    shapes = {
        name: shape for name, shape in source.shapes.items() if name not in removed
    }
    head = source.head
    if any(name.startswith(_NAMES[head.kind]) for name in removed if _NAMES[head.kind]):
        head = checkpoint_heads.head_of(shapes)
    return dataclasses.replace(source, shapes=shapes, head=head)
