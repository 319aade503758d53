"""Whether a converted checkpoint is the same model: its bits and what it computes."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import probe

_POOLER = "bert/pooler/"


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
    if source.format != written.format:
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
    # What no configuration of ours can say.
    if hasattr(module, "compute_as_there"):
        module.compute_as_there(model)
    missing = [name for name in report.missing if not name.startswith(_POOLER)]
    if missing:
        raise ValueError(
            f"{source.path} lacks {len(missing)} weights of a model with the head "
            f"{source.head.kind}, the first {missing[0]}; expected a whole checkpoint."
        )
    outputs = probe.outputs(model, batch)
    if report.missing:
        outputs.pop("pooled_output", None)  # Of random weights.
    return outputs
