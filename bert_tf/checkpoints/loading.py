"""Loads a checkpoint of any format into a model and reports what happened.

Only weights are loaded. The optimizer's slots and the step in a run's checkpoint are
not loaded. `--init_checkpoint` begins a new run with a different loss, data and
schedule, so old Adam moments would push its first steps in a meaningless direction. (A
run that resumes after an interruption does restore them; see `training`.)
"""

import collections
import dataclasses
import logging
import os
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import bundle
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What happened to a checkpoint's tensors and a model's weights, sorted by name."""

    path: str
    read: tuple[str, ...]  # Weights set from the checkpoint.
    missing: tuple[str, ...]  # Weights not in the checkpoint; they keep their values.
    left_over: tuple[str, ...]  # Tensors of the checkpoint that the model lacks.
    optimizer: tuple[str, ...]  # Slots and counters, which are never loaded here.
    # Sentences about computations that differ here, from texts or from ids.
    differences: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.path}: {len(self.read)} weights read"
        if self.missing:
            missing = ", ".join(self.missing)
            text += f"; missing from it, so newly initialized: {missing}"
        if self.left_over:
            text += f"; in it, but not in the model: {_summary(self.left_over)}"
        if self.differences:
            text += f"; {'; '.join(self.differences)}"
        return text


def _summary(names: Iterable[str]) -> str:
    """Returns the scopes of weights, such as "cls/predictions (5)"."""
    scopes = collections.Counter("/".join(name.split("/")[:2]) for name in names)
    return ", ".join(
        scope if count == 1 else f"{scope} ({count})" for scope, count in scopes.items()
    )


def load_checkpoint(model: Any, path: str | os.PathLike[str]) -> LoadReport:
    """Loads the weights of a checkpoint of any format into a model.

    Args:
        model: `BertModel` or any task model; is built if it is not.
        path: a checkpoint of the release (a prefix such as
            `uncased_L-12_H-768_A-12/bert_model.ckpt`, its folder, or the folder of a
            run, whose latest checkpoint is read), a Hugging Face folder, a KerasHub
            preset, a SavedModel, a `.keras` or `.weights.h5` file, or the name of a
            released model, such as "bert-base-uncased", which is downloaded.

    Returns:
        A `LoadReport`: weights read, weights missing in the checkpoint (they keep
        their values), tensors left over, and what the model computes differently.

    Raises:
        OSError: there is no such checkpoint, or it cannot be read.
        ValueError: the checkpoint has no encoder weights, a shape differs, a weight is
            not finite, or a file is damaged.
        ImportError: the format needs a package that is not installed.

    Example:
        report = load_checkpoint(model, "uncased_L-12_H-768_A-12/bert_model.ckpt")
        print(report)
    """
    report = load_source(model, formats.open_source(path))
    warn_of_pooler(model, report)
    return report


def open_run(run_dir: str) -> source_module.Source:
    """Returns the last checkpoint of a run.

    Raises:
        OSError: the checkpoint cannot be read.
        ValueError: there is none.
    """
    prefix = bundle.latest(run_dir)
    if prefix is None:
        raise ValueError(
            f"{run_dir} contains no checkpoint; train there first, or choose another "
            "run."
        )
    return formats.open_source(prefix)


def check_sizes(config: config_module.BertConfig, source: source_module.Source) -> None:
    """Compares the sizes of an encoder with a checkpoint, before they take memory.

    Raises:
        ValueError: the checkpoint has fewer layers, or other shapes.
    """
    num_layers = checkpoint_names.num_layers(source.shapes)
    if config.num_hidden_layers > num_layers:
        raise ValueError(
            f"The checkpoint {source.path} has {num_layers} layers, expected "
            f"{config.num_hidden_layers} (num_hidden_layers); pass the "
            "bert_config.json that belongs to the checkpoint."
        )
    expected = checkpoint_names.encoder_shapes(config)
    source_module.check_shapes(source.path, source.shapes, expected)


def load_model(path: str | os.PathLike[str], **kwargs: Any) -> Any:
    """Returns the model that a checkpoint describes, with its weights.

    Args:
        path: as for `load_checkpoint`. The checkpoint must include or lie beside its
            configuration.
        **kwargs: `name` and `dtype`, as for every Keras model.

    Returns:
        A `BertModel`, or the task model if the checkpoint has a head.

    Raises:
        OSError, ValueError, ImportError: as `load_checkpoint`; or the configuration or
            a weight is missing.
    """
    return model_of(formats.open_source(path), **kwargs)


def model_of(source: source_module.Source, **kwargs: Any) -> Any:
    """Returns the model of an opened checkpoint, with its weights; see `load_model`."""
    model = create_model(source, **kwargs)
    report = load_source(model, source)
    source.check_complete(report.missing)
    warn_of_pooler(model, report)
    return model


def warn_of_pooler(model: Any, report: LoadReport) -> None:
    """Logs that an encoder's pooler is untrained, because its checkpoint has none."""
    lacks_pooler = any(n.startswith(checkpoint_names.POOLER) for n in report.missing)
    if lacks_pooler and checkpoint_heads.kind_of(model) == kinds.Head.ENCODER:
        logger.warning(
            "%s has no pooler, so its pooler is untrained: do not use "
            "pooled_output before you have trained it; sequence_output is unaffected.",
            report.path,
        )


def create_model(source: source_module.Source, **kwargs: Any) -> Any:
    """Returns the model that a `Source` describes, newly initialized.

    Raises:
        ValueError: the configuration is missing, or the model has layers that only the
            folder of its run describes.
    """
    source.with_head(None, argument="head")  # Raises an error about such layers.
    return checkpoint_heads.create_model(
        source.required_config(), source.head, **{**source.arguments, **kwargs}
    )


def load_source(model: Any, source: source_module.Source) -> LoadReport:
    """Loads the weights of an opened checkpoint; see `load_checkpoint`.

    Logs the report and warns about differences.
    """
    report = assign(model, source)
    model.is_pretrained = True
    if source.head.labels and checkpoint_heads.OUTPUT_WEIGHTS not in report.missing:
        model.label_names = source.head.labels
    logger.info("%s", dataclasses.replace(report, differences=()))
    for sentence in source.notes:
        logger.info("%s: %s", report.path, sentence)
    for sentence in report.differences:
        logger.warning("%s: %s", report.path, sentence)
    return report


def assign(model: Any, source: source_module.Source) -> LoadReport:
    """Assigns the weights of a `Source` to a model; see `load_checkpoint`."""
    variables = checkpoint_names.checkpoint_variables(model)
    kind = checkpoint_heads.kind_of(model)
    # The heads of classifiers, taggers and multiple choice have the same names. A head
    # that is known to be of a different kind is not loaded.
    is_other = source.head.is_known and kind not in (None, source.head.kind)
    assigned = {
        name: variables[name]
        for name in source.shapes
        if name in variables and not (is_other and name in checkpoint_heads.OUTPUTS)
    }
    if not any(
        name.startswith(f"{checkpoint_names.ENCODER_SCOPE}/") for name in assigned
    ):
        example = min((*source.shapes, *source.unmapped), default="none")
        raise ValueError(
            f"The checkpoint {source.path} has no encoder weights: expected names such "
            f"as {checkpoint_names.WORD_EMBEDDINGS}, got {example}; pass a BERT "
            "checkpoint."
        )
    source_module.assign(source.path, source.shapes, source.read_each, assigned)
    left_over = {*source.shapes, *source.unmapped} - set(assigned)
    return LoadReport(
        path=source.path,
        read=tuple(sorted(assigned)),
        missing=tuple(sorted(set(variables) - set(assigned))),
        left_over=tuple(sorted(left_over)),
        optimizer=source.optimizer,
        differences=(*source.warnings, *_differences(model.config, source)),
    )


def _differences(
    config: config_module.BertConfig, source: source_module.Source
) -> Iterator[str]:
    if source.config is None:
        return
    for name in ("hidden_act", "attention", "layer_norm_epsilon"):
        ours, theirs = getattr(config, name), getattr(source.config, name)
        if name == "hidden_act":  # Some functions have several names.
            is_same = numerics.activation(ours) == numerics.activation(theirs)
        else:
            is_same = ours == theirs
        if not is_same:
            yield f"{name} is {theirs} in the checkpoint's configuration, {ours} here"
