"""The report that convert_checkpoint prints."""

import collections
import dataclasses
import json
import math
import os
import re
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import source as source_module
from bert_tf.modeling import numerics

# Activations that modeling.py of 2018 knows.
_ACTIVATIONS_OF_2018 = ("linear", "relu", "gelu", "tanh")
_LABELS = {
    "multi_label": "any number of classes",
    "regression": "a number per output",
}
# Keys of a run's task.json about predictions, which no other checkpoint has.
_OF_PREDICTOR = (
    "doc_stride",
    "max_answer_length",
    "max_query_length",
    "null_score_diff_threshold",
    "threshold",
)
_NUMBER = re.compile(r"(?<=[/._])\d+(?=[/._])")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conversion:
    """One finished and verified conversion."""

    source: source_module.Source  # As it was opened.
    target_path: str
    target_format: str
    converted: source_module.Source  # The part of it that was converted.
    written: source_module.Source  # The target, read back.
    placement: source_module.Placement
    dropped: tuple[str, ...]  # Weights of heads that were left out as requested.
    differences: Mapping[str, float]  # Of outputs on a probe batch.


def text(conversion: Conversion) -> str:
    """Returns the report of a conversion."""
    converted, written = conversion.converted, conversion.written
    mapped = [name for name in converted.shapes if name in written.shapes]
    lost = set(converted.shapes) - set(conversion.placement.places)
    num_parameters = sum(math.prod(written.shapes[name]) for name in written.shapes)
    lines = [
        f"source       {conversion.source.path} ({conversion.source.format})",
        f"target       {conversion.target_path} ({conversion.target_format})",
        f"model        {_model(converted)}",
        f"parameters   {num_parameters:,}",
        f"mapped       {len(mapped)} weights, the same bits when read back",
        *_counted("missing", set(written.shapes) - set(converted.shapes)),
        *_counted("left over", {*lost, *conversion.source.unmapped}),
        *_counted("dropped", conversion.dropped),
    ]
    if conversion.source.optimizer:
        num_slots = len(conversion.source.optimizer)
        lines.append(f"left out     {num_slots} tensors of the optimizer")
    for sentence in _notes(conversion):
        lines.append(f"note         {sentence}")
    like_target = ", computed with the target's activation and epsilon"
    changes = like_target if conversion.placement.changes else ""
    lines.append(f"largest difference of outputs on a probe batch{changes}:")
    for name, value in conversion.differences.items():
        lines.append(f"  {name:<32} {value:.1e}")
    return "\n".join(lines)


def _model(source: source_module.Source) -> str:
    config = source.required_config()
    casing = {True: ", lowercased", False: ", cased", None: ""}[source.do_lower_case]
    head = source.head
    labels = f" ({head.num_labels} classes)" if head.num_labels else ""
    if head.label_kind != "single_label":
        labels = f" ({head.num_labels} outputs, a label is {_LABELS[head.label_kind]})"
    pieces = "no vocabulary"
    if source.vocabulary is not None:
        pieces = f"{len(source.vocabulary):,} word pieces"
    return (
        f"{head.kind}{labels}, {config.num_hidden_layers} layers of "
        f"{config.hidden_size}, {config.hidden_act}, {pieces}{casing}"
    )


def _counted(title: str, names: Collection[str]) -> Iterator[str]:
    if names:
        yield f"{title:<12} {len(names)} weights:"
    for name, count in collections.Counter(map(_starred, sorted(names))).items():
        yield f"{count:>4} x {name}"


def _starred(name: str) -> str:
    """Returns a name with * instead of the number of its layer."""
    return _NUMBER.sub("*", re.sub(r"layer_\d+", "layer_*", name))


def _notes(conversion: Conversion) -> Iterator[str]:
    converted, written = conversion.converted, conversion.written
    for sentence in conversion.placement.changes:
        yield f"the target computes something else: {sentence}"
    yield from conversion.source.warnings
    yield from conversion.source.notes
    if conversion.source.format == "bert":
        task = companion_files.read_task(os.path.dirname(conversion.source.path) or ".")
        settings = [f"{k} {json.dumps(task[k])}" for k in _OF_PREDICTOR if task.get(k)]
        if settings:
            yield (
                "the target does not store these prediction settings: "
                f"{', '.join(settings)}"
            )
    if conversion.target_format == "bert":
        config = written.required_config()
        if config.hidden_act not in _ACTIVATIONS_OF_2018:
            yield f"the 2018 code does not support {config.hidden_act}"
        if config.is_causal:
            yield "the 2018 code ignores causal attention"
        if config.layer_norm_epsilon != numerics.LAYER_NORM_EPSILON:
            epsilon = config.layer_norm_epsilon
            yield f"the 2018 code ignores layer_norm_epsilon, here {epsilon:g}"
    if not converted.head.is_known:
        yield (
            f"output_weights were assumed to belong to a {converted.head.kind} head, "
            "as in 2018; if that is wrong, pass --head"
        )
    if converted.head.labels is not None and written.head.labels is None:
        names = ", ".join(converted.head.labels)
        yield (
            f"the target does not record the names of the {len(converted.head.labels)} "
            f"labels: {names if len(names) <= 80 else names[:79] + '…'}"
        )
    length, length_again = converted.text.max_seq_length, written.text.max_seq_length
    if "max_seq_length" not in conversion.placement.unsaid and length != length_again:
        positions = written.required_config().max_position_embeddings
        yield (
            f"the target does not record max_seq_length {length}; longer texts are cut "
            f"at {length_again or positions} word pieces, unless you pass it"
        )
    for name in conversion.placement.unsaid:
        yield f"the target does not record {name}, as allowed"
    if converted.vocabulary is not None and written.vocabulary is None:
        yield "the target cannot store the vocabulary"
    if converted.do_lower_case is not None and written.do_lower_case is None:
        yield "the target does not record whether text is lowercased"
