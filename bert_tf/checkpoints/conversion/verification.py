"""Checks that a converted checkpoint is the same model: its bits and its outputs.

Shape letters: B batch, S sequence, C choices, M masked positions.
"""

import dataclasses
import gc
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.modeling import config as config_module

# Absolute for outputs up to 1, relative to the largest output above.
TOLERANCE = 1e-5
_MAX_LENGTH = 24
_SIZES = {"B": 3, "C": 2, "M": 4}
# All layers but the last, and outputs derived from other outputs.
_NOT_COMPARED = ("all_encoder_layers", "probabilities")


def check_same_bits(
    source: source_module.Source,
    written: source_module.Source,
    placement: source_module.Placement,
) -> None:
    """Checks that the target contains the source's weights, vocabulary and casing."""
    lost = sorted(set(placement.places) & set(source.shapes) - set(written.shapes))
    if lost:
        raise ValueError(
            f"{lost[0]} and {len(lost) - 1} other weights were written, but are "
            "missing when read back, so nothing was kept."
        )
    shared = [name for name in source.shapes if name in written.shapes]
    pairs = zip(source.read_each(shared), written.read_each(shared), strict=True)
    for (name, array), (other_name, again) in pairs:
        # As bytes, so that NaNs are equal and zeros of different sign are not.
        is_alike = array.shape == again.shape and array.dtype == again.dtype
        if name != other_name or not is_alike or array.tobytes() != again.tobytes():
            raise _changed(name)
    before, after = source.vocabulary, written.vocabulary
    if before is not None and after is not None and before.tokens != after.tokens:
        raise _changed("The vocabulary")
    text, text_again = source.text.to_dict(), written.text.to_dict()
    unsaid = {*placement.unsaid}
    if source.text.pooling is None and source.text.output_activation is None:
        unsaid.add("max_seq_length")  # The report says so.
    for name in source.text.stated():
        if name not in unsaid and text[name] != text_again.get(name):
            raise _changed(name)
    # The report mentions it if the target does not record the casing.
    casings = {source.do_lower_case, written.do_lower_case}
    if len(casings - {None}) > 1:
        raise _changed("The do_lower_case")


def compare_outputs(
    source: source_module.Source,
    written: source_module.Source,
    *,
    allows_changes: bool,
) -> dict[str, float]:
    """Returns {output: largest difference} of source and target for a padded batch.

    Args:
        source: what was converted.
        written: the target.
        allows_changes: whether the target may compute a different activation or
            epsilon. If so, the source's weights are computed with the target's.

    Raises:
        ValueError: a difference is above `TOLERANCE`.
    """
    source_config = source.required_config()
    config = written.config or source_config
    if allows_changes:
        source_config = dataclasses.replace(
            source_config,
            hidden_act=config.hidden_act,
            layer_norm_epsilon=config.layer_norm_epsilon,
        )
    batch = probe_features(source_config, source.head.kind)
    expected = _outputs(source, source_config, batch)
    outputs = _outputs(written, config, batch)
    differences = {
        name: difference(expected[name], values)
        for name, values in outputs.items()
        if name in expected
    }
    for name, value in differences.items():
        if not value <= TOLERANCE:
            raise ValueError(
                f"{name} of the converted checkpoint differs by {value:.1e} from the "
                f"source's, but at most {TOLERANCE:g} is allowed, so nothing was kept."
            )
    return differences


def probe_features(
    config: config_module.BertConfig, kind: str = "encoder"
) -> dict[str, np.ndarray]:
    """Returns {feature: int32 array} of random pieces, in padded rows of two segments.

    The kind of head decides on the features and their shapes.
    """
    length = min(_MAX_LENGTH, config.max_position_embeddings)
    sizes = {**_SIZES, "S": length}
    shapes = {
        name: tuple(sizes[letter] for letter in letters)
        for name, letters in checkpoint_heads.HEADS[kind].features.items()
    }
    shape = shapes["input_ids"]
    rng = np.random.default_rng(20181011)
    ids = rng.integers(config.vocab_size, size=shape)
    num_real = length - rng.integers(length // 2 + 1, size=shape[:-1])
    num_real.flat[0] = length  # One row is full; the remaining rows are padded.
    positions = np.arange(length)
    mask = positions < num_real[..., None]
    segments = mask & (positions >= num_real[..., None] // 2)
    if config.type_vocab_size < 2:
        segments = np.zeros_like(segments)
    columns = {"input_ids": ids * mask, "input_mask": mask, "segment_ids": segments}
    for name in shapes.keys() - columns.keys():  # Positions within the shortest row.
        columns[name] = rng.integers(length // 2, size=shapes[name])
    return {name: column.astype(np.int32) for name, column in columns.items()}


def model_outputs(model: Any, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns {name: float32 array} of a model's outputs for a batch."""
    return {
        name: np.asarray(value, np.float32)
        for name, value in model(batch, training=False).items()
        if name not in _NOT_COMPARED
    }


def difference(expected: np.ndarray, got: np.ndarray) -> float:
    """Returns the largest difference, in parts of the largest value if that is above 1.

    It is NaN if the shapes differ or an array has a NaN.
    """
    if expected.shape != got.shape:
        return float("nan")
    largest = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    return float(np.max(np.abs(expected - got), initial=0.0)) / largest


def _changed(what: str) -> ValueError:
    return ValueError(f"{what} differs when it is read back, so nothing was kept.")


def _outputs(
    source: source_module.Source,
    config: config_module.BertConfig,
    batch: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Returns what the weights of a source compute with a configuration."""
    model = loading.create_model(dataclasses.replace(source, config=config))
    report = loading.assign(model, source)
    source.check_complete(report.missing)
    outputs = model_outputs(model, batch)
    del model
    gc.collect()  # Keras models are reference cycles; free this one before the next.
    if report.missing:
        outputs.pop("pooled_output", None)  # Of random weights.
    return outputs
