"""Conversion on one page: open, place, write, read back, compare, report."""

import contextlib
import dataclasses

import numpy as np
import tensorflow as tf

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import conversion_report
from bert_tf.checkpoints import conversion_source
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import native_folder
from bert_tf.checkpoints import probe
from bert_tf.checkpoints import target as target_module


def run(options, *, progress=progress_module.silent) -> str:
    """Converts a checkpoint as the options say; returns a report.

    Args:
        options: `conversion_options.ConvertCheckpointOptions`.
        progress: see `bert_tf.progress`.

    Raises:
        OSError: something cannot be read or written.
        ValueError: the source is no BERT or incomplete, the target has no place for
            its head or computes otherwise, or the result is not the same model.
        ImportError: a format needs a package that is not installed.
    """
    return conversion_report.text(
        convert(options, progress=progress), verbose=options.verbose
    )


def convert(options, *, progress=progress_module.silent):
    """Converts a checkpoint as the options say; see `run`.

    Returns:
        `conversion_report.Conversion`, what was done.
    """
    target = target_module.of(
        options.target, options.target_format, overwrite=options.overwrite
    )
    writer = formats.module_of(options.target_format)
    source = conversion_source.open_source(options, progress=progress)
    target_module.check(target, source.path)
    chosen, left_out = conversion_source.with_head(source, options.head)
    kept, dropped, placement = _placed(chosen, writer, options)
    progress("convert", 1, 4, unit="stages")
    with target_module.complete_or_absent(target) as folder:
        path = target.inside(folder)
        _write(writer, kept, folder, target)
        progress("convert", 2, 4, unit="stages")
        written = _read_back(writer, path, target)
        _check_same_bits(kept, written, placement)
        _check_extras(kept, written)
        progress("convert", 3, 4, unit="stages")
        differences = _check_same_outputs(kept, written, writer, path)
    progress("convert", 4, 4, unit="stages")
    return conversion_report.Conversion(
        source=source,
        target_path=target.path,
        target_format=options.target_format,
        kept=kept,
        written=written,
        placement=placement,
        dropped=(*left_out, *dropped),
        differences=differences,
    )


def _placed(source, writer, options):
    """Returns what is converted, the heads dropped, and where everything goes."""
    placement = writer.placement(source)
    heads = list(filter(conversion_source.is_head, placement.without_place))
    if heads and not options.drop_head:
        raise ValueError(
            f"{options.target_format} has no place for {', '.join(heads)} of "
            f"{source.path}; give --drop_head to leave it out."
        )
    if options.drop_head and not heads:
        raise options_module.OptionError(
            f"--drop_head: {options.target_format} has a place for everything of "
            f"{source.path}; leave the flag out, or give --head=encoder for the "
            "encoder alone."
        )
    if heads:
        source = conversion_source.without(source, heads)
        placement = writer.placement(source)
    if placement.changes and not options.allow_activation_change:
        raise ValueError(
            f"{options.target_format} does not compute what {source.path} does: "
            f"{'; '.join(placement.changes)}; give --allow_activation_change to "
            "convert it all the same."
        )
    return source, heads, placement


@contextlib.contextmanager
def _clear_errors(target):
    """Turns what libraries raise while they write into an OSError with one sentence."""
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        reason = getattr(error, "message", None) or str(error)
        reason = reason.split("\n")[0].rstrip(".")
        raise OSError(f"{target.path} cannot be written: {reason}.") from error


def _write(writer, source, folder, target):
    with _clear_errors(target):
        if target.is_folder:
            writer.write(source, folder)
        elif writer is native_folder:
            writer.write(source, folder, name=target.name)
        else:
            writer.write(source, target.inside(folder))


def _read_back(writer, path, target):
    try:
        return writer.open_source(path)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"What was written for {target.path} cannot be read back ({error}), so "
            "nothing was kept."
        ) from error


def _check_same_bits(source, written, placement):
    """Checks that every weight that has a place is there, with the very same bits."""
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
            raise ValueError(
                f"{name} is not what it was when it is read back, so nothing was kept."
            )


def _are_same_bits(before, after):
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    # NaNs too, and zeros with their sign.
    before, after = (np.ascontiguousarray(x).view(np.uint8) for x in (before, after))
    return np.array_equal(before, after)


def _check_extras(source, written):
    """Checks what goes along with the weights, where the target has kept it."""
    for name in ("vocabulary", "do_lower_case"):
        before, after = getattr(source, name), getattr(written, name)
        before, after = (getattr(x, "tokens", x) for x in (before, after))
        if None not in (before, after) and before != after:
            raise ValueError(
                f"The {name} is not what it was when it is read back, so nothing was "
                "kept."
            )


def _check_same_outputs(source, written, writer, path):
    """Returns {output: largest difference}; ValueError where one is too large."""
    config = written.config or source.config
    # As the target computes it: where this is a change, it has been allowed.
    like_target = dataclasses.replace(
        source.config,
        hidden_act=config.hidden_act,
        layer_norm_epsilon=config.layer_norm_epsilon,
    )
    batch = probe.features(source.config, source.head.kind)
    expected = _outputs(source, like_target, writer, batch)
    got = {"": _outputs(written, config, writer, batch)}
    if hasattr(writer, "library_outputs"):
        got["in its library"] = writer.library_outputs(path, batch) or {}
    differences = {
        f"{name} {where}".strip(): probe.difference(expected[name], values)
        for where, outputs in got.items()
        for name, values in outputs.items()
        if name in expected
    }
    for name, difference in differences.items():
        if not difference <= probe.TOLERANCE:
            raise ValueError(
                f"{name} of the converted checkpoint differs by {difference:.1e} from "
                f"the source's (at most {probe.TOLERANCE:g} is allowed), so nothing "
                "was kept."
            )
    return differences


def _outputs(source, config, writer, batch):
    model = loading.create_model(dataclasses.replace(source, config=config))
    report = loading.assign(model, source)
    if hasattr(writer, "compute_as_there"):
        writer.compute_as_there(model)
    outputs = probe.outputs(model, batch)
    if any(name.startswith("bert/pooler/") for name in report.missing):
        outputs.pop("pooled_output", None)  # Of random weights.
    missing = [name for name in report.missing if not name.startswith("bert/pooler/")]
    if missing:
        raise ValueError(
            f"{source.path} lacks {len(missing)} weights of a model with the head "
            f"{source.head.kind}, the first {missing[0]}; expected a whole checkpoint."
        )
    return outputs
