"""A checkpoint of any format into a model, with a report of what became of it."""

import dataclasses
import logging

from bert_tf import progress as progress_module
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import rotation
from bert_tf.modeling import numerics

logger = logging.getLogger(__name__)

# Weights of heads whose shapes follow from the task, not from the model's size.
_HEADS = (checkpoint_heads.OUTPUT_WEIGHTS, "output_bias", "cls/squad/")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadReport:
    """What became of a checkpoint's tensors and a model's weights; names, sorted."""

    path: str  # The checkpoint that was read.
    format: str  # A key of `formats.FORMATS`.
    read: tuple[str, ...]  # Weights that now have the checkpoint's values.
    missing: tuple[str, ...]  # Weights that the checkpoint lacks: left as they were.
    left_over: tuple[str, ...]  # Tensors of the checkpoint that the model has not.
    optimizer: tuple[str, ...]  # Slots and step: not weights, so not read here.
    # Sentences on what this model computes otherwise than the checkpoint's own.
    differences: tuple[str, ...] = ()

    def __str__(self):
        text = f"{self.path}: {len(self.read)} weights read"
        if self.missing:
            text += f"; not in it, so newly initialized: {', '.join(self.missing)}"
        if self.left_over:
            text += f"; in it, but not in the model: {', '.join(self.left_over)}"
        if self.differences:
            text += f"; {'; '.join(self.differences)}"
        return text


def load_checkpoint(model, path, *, progress=progress_module.silent) -> LoadReport:
    """Gives a model the weights of a checkpoint of any format.

    Args:
        model: `BertModel` or any task's model; is built if it is not.
        path: a checkpoint of the release (a prefix such as
            `uncased_L-12_H-768_A-12/bert_model.ckpt`, or its folder, or that of a
            run, whose latest checkpoint is taken), a Hugging Face folder, a KerasHub
            preset, a SavedModel, a `.keras` or `.weights.h5` file, or the name of a
            released model, such as "bert-base-uncased", which is fetched.
        progress: told about a download.

    Returns:
        A `LoadReport`: weights read, weights missing in the checkpoint (they keep
        their values), tensors left over, and what the model computes otherwise.

    Raises:
        OSError: there is no such checkpoint, or it cannot be read.
        ValueError: nothing of the encoder is in it, a shape differs, or the files
            cannot be understood.
        ImportError: its format needs a package that is not installed.

    Example:
        report = load_checkpoint(model, "uncased_L-12_H-768_A-12/bert_model.ckpt")
        print(report)
    """
    return load_source(model, formats.open_source(path, progress=progress))


def load_run(model, run_dir: str) -> str:
    """Gives a model the last weights of the training run that it is of.

    Args:
        model: any task's model; is built if it is not.
        run_dir: `output_dir` of the run.

    Returns:
        The checkpoint's prefix.

    Raises:
        OSError: the checkpoint cannot be read.
        ValueError: there is none, or it lacks weights of the model.
    """
    prefix = rotation.latest(run_dir)
    if prefix is None:
        raise ValueError(
            f"{run_dir} holds no checkpoint; train there first, or name another run."
        )
    report = load_checkpoint(model, prefix)
    if report.missing:
        raise ValueError(
            f"{prefix} lacks {len(report.missing)} of the model's weights, the first "
            f"{report.missing[0]}; expected a checkpoint of this run."
        )
    return prefix


def load_model(path, *, progress=progress_module.silent, **kwargs):
    """Returns the model that a checkpoint describes, with its weights.

    Args:
        path: as for `load_checkpoint`; the size of the model has to be beside the
            weights or in the file.
        progress: told about a download.
        **kwargs: name and dtype, as for every Keras model.

    Returns:
        A `BertModel`, or the task's model where the checkpoint has a head.

    Raises:
        OSError, ValueError, ImportError: as `load_checkpoint`; or the model's size is
            not known, or one of its weights is missing.
    """
    source = formats.open_source(path, progress=progress)
    model = create_model(source, **kwargs)
    report = load_source(model, source)
    # A head that does not use the pooler may come without one.
    missing = [name for name in report.missing if not name.startswith("bert/pooler/")]
    if missing:
        raise ValueError(
            f"{source.path} lacks {len(missing)} of the model's weights, the first "
            f"{missing[0]}; expected a whole model."
        )
    return model


def create_model(source, **kwargs):
    """Returns the model that a `Source` describes, newly initialized.

    Raises:
        ValueError: the model's size is not known, or it has layers that only the
            folder of its run describes.
    """
    if source.config is None:
        raise ValueError(
            f"The size of the model of {source.path} is not known; put its "
            "bert_config.json beside it."
        )
    between = checkpoint_heads.between((*source.shapes, *source.unmapped))
    if between:
        raise ValueError(
            f"{source.path} has a BiLSTM between encoder and head ({between[0]}), "
            "which no checkpoint describes; use bert_tf.load with the folder of its "
            "run, or give a BertModel to load_checkpoint for the encoder alone."
        )
    return checkpoint_heads.create_model(source.config, source.head, **kwargs)


def load_source(model, source) -> LoadReport:
    """Gives a model the weights of a `Source`, and logs it; see `load_checkpoint`."""
    report = assign(model, source)
    logger.info("%s", report)
    for sentence in report.differences:
        logger.warning("%s: %s", source.path, sentence)
    return report


def assign(model, source) -> LoadReport:
    """Gives a model the weights of a `Source`; see `load_checkpoint`.

    Shapes are compared before anything is assigned. One tensor is in memory at a time.
    """
    variables = checkpoint_names.checkpoint_variables(model)
    offered = _offered(model, source)
    found = {name: variables[name] for name in offered if name in variables}
    _check(found, source)
    for name, array in source.read_each(found):
        found[name].assign(array)
    left_over = {*source.shapes, *source.unmapped} - set(found)
    return LoadReport(
        path=source.path,
        format=source.format,
        read=tuple(sorted(found)),
        missing=tuple(sorted(set(variables) - set(found))),
        left_over=tuple(sorted(left_over)),
        optimizer=source.optimizer,
        differences=tuple(_differences(model.config, source)),
    )


def _offered(model, source):
    """Returns the names that may be read: no head's that is known to be another one.

    A classifier, a tagger and a chooser of endings call their weights the same.
    """
    kind = checkpoint_heads.kind_of(model)
    is_other = source.head.is_known and None is not kind != source.head.kind
    shared = ("output_weights", "output_bias") if is_other else ()
    return [name for name in source.shapes if name not in shared]


def _check(found, source):
    if not any(name.startswith(f"{checkpoint_names.ENCODER_SCOPE}/") for name in found):
        example = min((*source.shapes, *source.unmapped), default="none")
        raise ValueError(
            f"Nothing of the encoder was found in the checkpoint {source.path}: "
            f"expected names such as bert/embeddings/word_embeddings, got {example}; "
            "give a BERT checkpoint."
        )
    for name, variable in found.items():
        shape, expected = list(source.shapes[name]), list(variable.shape)
        if shape == expected:
            continue
        advice = "give the bert_config.json that belongs to the checkpoint."
        if name.startswith(_HEADS):
            advice = (
                "its head is another one: make a checkpoint of the encoder alone by "
                "convert_checkpoint --head=encoder, and start from that."
            )
        raise ValueError(
            f"{name} has shape {shape} in the checkpoint {source.path}, expected "
            f"{expected}; {advice}"
        )


def _differences(config, source):
    if source.config is None:
        return
    ours, theirs = config.hidden_act, source.config.hidden_act
    if numerics.activation(ours) is not numerics.activation(theirs):
        yield f"hidden_act is {theirs} in the checkpoint's configuration, {ours} here"
    ours, theirs = config.attention, source.config.attention
    if ours != theirs:
        yield f"attention is {theirs} in the checkpoint's configuration, {ours} here"
    ours, theirs = config.layer_norm_epsilon, source.config.layer_norm_epsilon
    if ours != theirs:
        yield (
            f"layer_norm_epsilon is {theirs:g} in the checkpoint's configuration, "
            f"{ours:g} here"
        )
