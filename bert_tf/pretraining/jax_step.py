"""The whole pretraining step on Keras's JAX backend, to compile it or to measure it.

Training runs on TensorFlow. Keras has one backend per process, so this module is used
in processes of their own, and it imports no TensorFlow. `tpu_compilation` starts one to
compile the step for a TPU: libtpu has the compiler of the real chips and needs none.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.optimization import create
from bert_tf.pretraining import memory_traffic

# Any rate and number of steps give the same program.
_LEARNING_RATE, _NUM_STEPS, _NUM_WARMUP_STEPS = 1e-4, 1000, 100
# Ends of the names of files that XLA writes: the program as it will run; what it needs
# of each memory; and the file that follows only if it fits.
_PROGRAM, _MEMORY, _FITS = (
    f"after_optimizations{end}.txt"
    for end in ("", "-memory-usage-report", "_after_buffer_assignment")
)
_STEP = "take_step"  # The function that is compiled, part of these names.
_CHIP_MEMORY = re.compile(r"\(color=0\)\s+Total bytes: (\d+)")
_SECONDS_BETWEEN_LOOKS = 0.2
# An operation of a v6e's SparseCore, which gets its operands after its start.
_LATE_OPERANDS = re.compile(
    r"^ *%([\w.\-]+) = .* async-update\(%([\w.\-]+), ([^)]*)\).*\n", re.MULTILINE
)


def write_report(settings_file: str, report_file: str) -> None:
    """Compiles the step that a file describes, writes a report and ends the process.

    Args:
        settings_file: JSON of `tpu_compilation.StepSettings`, with `topology` and
            `xla_folder`, the folder that XLA writes its programs to, and
            `chip_memory_bytes`.
        report_file: JSON with the fields of `tpu_compilation.CompiledStep`.
    """
    import jax

    settings = json.loads(pathlib.Path(settings_file).read_text(encoding="utf-8"))
    try:
        report = compile_step(settings)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        sys.stderr.write(str(error).partition("\n")[0])
        sys.stderr.flush()
        os._exit(1)  # As below.
    pathlib.Path(report_file).write_text(json.dumps(report), encoding="utf-8")
    os._exit(0)  # The compiler still works on the machine code.


def compile_step(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns what the compiler reports about a step; see `write_report`.

    The program and its memory are known long before the machine code is, which takes
    most of the compiler's time. This function does not wait for it.
    """
    import jax

    model = create_model(settings)
    optimizer = create_optimizer(model, settings)
    replicated, by_example = _shardings(settings["topology"])
    step = jax.jit(
        build_step(model, optimizer),
        in_shardings=(replicated, replicated, by_example, replicated),
        out_shardings=replicated,
        donate_argnums=(0, 1),  # Weights and slots are updated in place.
    )
    started = time.monotonic()
    lowered = step.lower(
        _shapes_of(model.trainable_variables),
        _shapes_of(optimizer.variables),
        batch_shapes(settings),
        jax.ShapeDtypeStruct((), "int32"),
    )
    folder = pathlib.Path(settings["xla_folder"])
    compiling = concurrent.futures.ThreadPoolExecutor(1).submit(lowered.compile)
    while not compiling.done() and not _text_of(folder, _FITS):
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    fits, usage = bool(_text_of(folder, _FITS)), _text_of(folder, _MEMORY)
    if not fits:
        check_is_too_large(
            usage, settings["chip_memory_bytes"], error=compiling.exception()
        )
    report = {"fits": fits, "memory_bytes": needed_bytes(usage)}
    if fits:
        report |= _costs(_text_of(folder, _PROGRAM))
    return report | {"compile_seconds": time.monotonic() - started}


def needed_bytes(usage: str) -> int:
    """Returns how many bytes of the chip's memory a step needs.

    Args:
        usage: XLA's report of the memory that the step needs.

    Raises:
        ValueError: the report does not have the expected form.
    """
    found = _CHIP_MEMORY.search(usage)
    if found is None:
        raise ValueError(
            "XLA's memory report has no line 'Total bytes' for the chip's memory; its "
            "form may have changed. Install the versions that this was written for: "
            "pip install jax==0.10.2 libtpu==0.0.52"
        )
    return int(found[1])


def check_is_too_large(
    usage: str, chip_memory_bytes: float, *, error: BaseException | None
) -> None:
    """Raises an error unless the chip's memory is the reason why compiling ended.

    The compiler also reports other exhausted memories as "RESOURCE_EXHAUSTED".

    Args:
        usage: XLA's report of the memory that the step needs; "" if there is none.
        chip_memory_bytes: published size of the chip's memory.
        error: of the compiler.

    Raises:
        ValueError: there is no error, although XLA did not write the program.
        BaseException: `error`, if it has another reason.
    """
    if error is None:
        raise ValueError(
            "XLA did not write the program that it compiled; check XLA_FLAGS."
        )
    is_exhausted = usage and "RESOURCE_EXHAUSTED" in str(error)
    if not is_exhausted or needed_bytes(usage) <= chip_memory_bytes:
        raise error


def _text_of(folder, end):
    """Returns the text that XLA wrote about the step; "" if there is none yet."""
    for path in folder.glob(f"*{_STEP}*.{end}"):
        return path.read_text(encoding="utf-8")
    return ""


def _costs(program):
    """Returns the FLOPs and bytes of a program, given its text."""
    import jax
    from jaxlib import _jax  # type: ignore[attr-defined]
    from jaxlib import xla_client

    module = xla_client.hlo.hlo_module_from_text(parsable(program))
    client = jax.devices("cpu")[0].client
    counted = _jax.hlo_module_cost_analysis(client, module)
    return {
        "flops": counted["flops"],
        "bytes_accessed": counted["bytes accessed"],
        "traffic_bytes": memory_traffic.memory_bytes(module.to_string()),
    }


def parsable(program: str) -> str:
    """Returns the text of a program that XLA can read.

    XLA writes gathers of a v6e's SparseCore (start, update, done) in a form that its
    own parser refuses. They become one instruction with the same operands and result.
    """
    for update, start, operands in _LATE_OPERANDS.findall(program):
        for name in (start, update):
            line = rf"^ *%{re.escape(name)} = .*\n"
            program = re.sub(line, "", program, flags=re.MULTILINE)
        program = re.sub(
            rf"async-done\(%{re.escape(update)}\).*",
            f'custom-call({operands}), custom_call_target="offloaded"',
            program,
        )
    return program


def create_model(settings: dict[str, Any]) -> pretrainer.BertPretrainer:
    """Returns the built model of a step."""
    model = pretrainer.BertPretrainer(
        config_module.BertConfig.from_dict(settings["config"]),
        next_sentence=settings["next_sentence"],
        dtype=settings["dtype"],
    )
    model.bert.embeddings.rows_multiple = settings["vocabulary_multiple"]
    model.build()
    model.bert.encoder.recomputes_layers = settings["recompute_layers"]
    return model


def create_optimizer(
    model: pretrainer.BertPretrainer, settings: dict[str, Any]
) -> keras.optimizers.Optimizer:
    """Returns the built optimizer of a step. It clips the gradient."""
    optimizer = create.create_optimizer(
        _LEARNING_RATE,
        _NUM_STEPS,
        _NUM_WARMUP_STEPS,
        clip_norm=create.CLIP_NORM,
        name=settings["optimizer"],
    )
    optimizer.build(model.trainable_variables)
    return optimizer


def build_step(
    model: pretrainer.BertPretrainer, optimizer: keras.optimizers.Optimizer
) -> Callable[..., tuple[list[Any], list[Any], Any]]:
    """Returns (weights, slots, batch, number of the step) -> (weights, slots, loss)."""
    import jax

    frozen = [(v, v.value) for v in model.non_trainable_variables]

    def take_step(weights, slots, features, number):
        example_index = jax.numpy.arange(features["input_ids"].shape[0])
        keys = model.dropout_keys(12345, number, example_index)

        def loss_of(weights):
            state = [*zip(model.trainable_variables, weights, strict=True), *frozen]
            with keras.StatelessScope(state_mapping=state), model.xla_step():
                outputs = model.training_outputs(features, keys)
                return model.total_loss(features, outputs)

        loss, gradients = jax.value_and_grad(loss_of)(weights)
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return weights, slots, loss

    return take_step


def _shardings(topology):
    """Returns the shardings "the same on all chips" and "divided by examples"."""
    import jax
    from jax.experimental import topologies

    devices = topologies.get_topology_desc(topology_name=topology, platform="tpu")
    mesh = jax.sharding.Mesh(np.array(devices.devices).reshape(-1), ("examples",))
    spec = jax.sharding.PartitionSpec
    return (
        jax.sharding.NamedSharding(mesh, spec()),
        jax.sharding.NamedSharding(mesh, spec("examples")),
    )


def _shapes_of(variables):
    import jax

    return [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]


def batch_shapes(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the shapes and dtypes of a batch, `jax.ShapeDtypeStruct` by name."""
    import jax

    def column(*sizes, dtype="int32"):
        return jax.ShapeDtypeStruct((settings["batch_size"], *sizes), dtype)

    length = settings["max_seq_length"]
    features = {
        name: column(length) for name in ("input_ids", "input_mask", "segment_ids")
    }
    masked = settings["max_predictions_per_seq"]
    features["masked_lm_positions"] = column(masked)
    features["masked_lm_ids"] = column(masked)
    features["masked_lm_weights"] = column(masked, dtype="float32")
    if settings["next_sentence"]:
        features["next_sentence_labels"] = column(1)
    return features
