"""Checks that a converted checkpoint is the same model: its bits and its outputs."""

import dataclasses
import gc
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.conversion import probe
from bert_tf.modeling import config as config_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class OutputComparison:
    """Largest differences of outputs on a probe batch, by output name."""

    # Target against the source's weights with the target's activation: only rounding.
    differences: Mapping[str, float]
    # The source's weights with the target's activation against their own activation.
    changes: Mapping[str, float]


def check_same_bits(
    source: source_module.Source,
    written: source_module.Source,
    placement: source_module.Placement,
) -> None:
    """Checks that the target contains the source's weights, vocabulary and casing.

    Args:
        source: `Source` that was written.
        written: `Source` of the target, opened.
        placement: `Placement` of the source in the target.

    Raises:
        ValueError: a weight is missing or differs in any bit, or the vocabulary or the
            text encoding differs.
    """
    lost = sorted(set(placement.places) & set(source.shapes) - set(written.shapes))
    if lost:
        raise ValueError(
            f"{lost[0]} and {len(lost) - 1} other weights were written, but are "
            "missing when read back, so nothing was kept."
        )
    shared = [name for name in source.shapes if name in written.shapes]
    pairs = zip(source.read_each(shared), written.read_each(shared), strict=True)
    for (name, array), (other_name, again) in pairs:
        if name != other_name or not _are_same_bits(array, again):
            raise _changed(name)
    before, after = source.vocabulary, written.vocabulary
    if before is not None and after is not None and before.tokens != after.tokens:
        raise _changed("The vocabulary")
    _check_same_text(source, written, placement)


def _check_same_text(
    source: source_module.Source,
    written: source_module.Source,
    placement: source_module.Placement,
) -> None:
    """Checks that the target records the same text encoding as the source."""
    before, after = source.text.to_dict(), written.text.to_dict()
    if written.do_lower_case is None:
        before.pop("do_lower_case", None)  # The report mentions it.
    for name in source.text.stated():
        if name not in placement.unsaid and before[name] != after.get(name):
            raise _changed(name)
    if before.get("do_lower_case") not in (None, after.get("do_lower_case")):
        raise _changed("The do_lower_case")


def compare_outputs(
    source: source_module.Source, written: source_module.Source, writer: Any, path: str
) -> OutputComparison:
    """Compares the outputs of a source and a target for one padded batch.

    Args:
        source: `Source` that was written.
        written: `Source` of the target, opened.
        writer: module of the target's format. If it has `library_outputs`, what the
            format's own library computes is compared, too.
        path: of the target.

    Raises:
        ValueError: the source is incomplete.
    """
    source_config = source.required_config()
    config = written.config or source_config
    like_target = dataclasses.replace(
        source_config,
        hidden_act=config.hidden_act,
        layer_norm_epsilon=config.layer_norm_epsilon,
    )
    batch = probe.features(source_config, source.head.kind)
    expected = _outputs(source, like_target, batch)
    differences = _differences(expected, _outputs(written, config, batch))
    if hasattr(writer, "library_outputs"):
        found = _differences(expected, writer.library_outputs(path, batch))
        differences |= {f"{name} in its library": x for name, x in found.items()}
    changes = {}
    if like_target != source_config:
        changes = _differences(_outputs(source, source_config, batch), expected)
    return OutputComparison(differences=differences, changes=changes)


def _are_same_bits(before: np.ndarray, after: np.ndarray) -> bool:
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    # As bytes, so that NaNs are equal and zeros of different sign are not.
    before, after = (np.ascontiguousarray(x).view(np.uint8) for x in (before, after))
    return np.array_equal(before, after)


def _changed(what: str) -> ValueError:
    return ValueError(f"{what} differs when it is read back, so nothing was kept.")


def _differences(
    expected: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray]
) -> dict[str, float]:
    return {
        name: probe.difference(expected[name], values)
        for name, values in got.items()
        if name in expected
    }


def _outputs(
    source: source_module.Source,
    config: config_module.BertConfig,
    batch: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Returns what the weights of a source compute with a configuration."""
    model = loading.create_model(dataclasses.replace(source, config=config))
    report = loading.assign(model, source)
    source.check_complete(report.missing)
    outputs = probe.outputs(model, batch)
    del model
    gc.collect()  # Keras models are reference cycles; free this one before the next.
    if report.missing:
        outputs.pop("pooled_output", None)  # Of random weights.
    return outputs
