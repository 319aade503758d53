"""Whether a converted checkpoint is the same model: its bits and what it computes."""

import dataclasses
import gc
from collections.abc import Mapping

import numpy as np

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import loading
from bert_tf.checkpoints.conversion import probe

_POOLER = "bert/pooler/"
# A format's function that makes a model compute what no configuration of ours says.
_OWN_RULES = "compute_as_there"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputComparison:
    """Largest differences of outputs on a probe batch, by their names."""

    # Of the target from the source's weights with the target's activation: has to be
    # nothing but rounding.
    differences: Mapping[str, float]
    # Of the source's weights with the target's activation from the source's own.
    changes: Mapping[str, float]


def check_same_bits(source, written, placement):
    """Checks that what was written is what the source holds.

    Args:
        source: `Source` that was written.
        written: `Source` of the target, opened.
        placement: `Placement` of the source in the target.

    Raises:
        ValueError: a weight that has a place is not there or has not the very same
            bits, or vocabulary or casing are others.
    """
    lost = sorted(set(placement.places) & set(source.shapes) - set(written.shapes))
    if lost:
        raise ValueError(
            f"{lost[0]} and {len(lost) - 1} other weights were written, but are not "
            "there when read back, so nothing was kept."
        )
    shared = [name for name in source.shapes if name in written.shapes]
    pairs = zip(source.read_each(shared), written.read_each(shared), strict=True)
    for (name, before), (other_name, after) in pairs:
        if name != other_name or not _are_same_bits(before, after):
            raise _changed(name)
    for name in ("vocabulary", "do_lower_case"):
        before, after = getattr(source, name), getattr(written, name)
        before, after = (getattr(value, "tokens", value) for value in (before, after))
        if None not in (before, after) and before != after:
            raise _changed(f"The {name}")


def compare_outputs(source, written, writer, path) -> OutputComparison:
    """Compares what a source and a target compute for one padded batch.

    Args:
        source: `Source` that was written.
        written: `Source` of the target, opened.
        writer: module of the target's format. Where it has `library_outputs` and the
            library is there, the library's own model is compared too.
        path: of the target.

    Raises:
        ValueError: the source is no whole model.
    """
    config = written.config or source.config
    like_target = dataclasses.replace(
        source.config,
        hidden_act=config.hidden_act,
        layer_norm_epsilon=config.layer_norm_epsilon,
    )
    batch = probe.features(source.config, source.head.kind)
    expected = _outputs(source, like_target, writer, batch)
    differences = _differences(expected, _outputs(written, config, writer, batch))
    if hasattr(writer, "library_outputs"):
        found = _differences(expected, writer.library_outputs(path, batch) or {})
        differences |= {f"{name} in its library": x for name, x in found.items()}
    changes = {}
    reader = formats.module_of(source.format)
    has_own_rules = hasattr(reader, _OWN_RULES) or hasattr(writer, _OWN_RULES)
    if like_target != source.config or (has_own_rules and reader is not writer):
        changes = _differences(_outputs(source, source.config, reader, batch), expected)
    return OutputComparison(differences=differences, changes=changes)


def _are_same_bits(before, after):
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    # NaNs too, and zeros with their sign.
    before, after = (np.ascontiguousarray(x).view(np.uint8) for x in (before, after))
    return np.array_equal(before, after)


def _changed(what):
    return ValueError(
        f"{what} is not what it was when it is read back, so nothing was kept."
    )


def _differences(expected, got):
    return {
        name: probe.difference(expected[name], values)
        for name, values in got.items()
        if name in expected
    }


def _outputs(source, config, module, batch):
    """Returns what the weights of a source compute with a config, as a format does."""
    model = loading.create_model(dataclasses.replace(source, config=config))
    report = loading.assign(model, source)
    if hasattr(module, _OWN_RULES):
        getattr(module, _OWN_RULES)(model)
    missing = [name for name in report.missing if not name.startswith(_POOLER)]
    if missing:
        raise ValueError(
            f"{source.path} lacks {len(missing)} weights of a model with the head "
            f"{source.head.kind}, the first {missing[0]}; expected a whole checkpoint."
        )
    outputs = probe.outputs(model, batch)
    del model
    gc.collect()  # Keras's models are cycles: the next one would come on top of it.
    if report.missing:
        outputs.pop("pooled_output", None)  # Of random weights.
    return outputs
