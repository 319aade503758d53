"""Part of tpu_compile and gpu: the whole pretraining step on Keras's JAX backend.

libtpu has the compiler of the real chips and needs none of them. `compile_step` starts
a process that compiles the step and reports its memory, FLOPs and memory traffic:
Keras has one backend per process. The model, its formulas and the optimizer are those
that TensorFlow trains. Both backends use the same compiler (XLA), but the programs
that they hand to it are not identical.
"""

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Slice:
    """Connected chips, and the published figures of one chip."""

    num_chips: int
    topology: str  # libtpu's name of the arrangement.
    accelerator_type: str  # Google Cloud's name.
    flops_per_second: float  # Matrix products in bfloat16.
    memory_bytes: float


# https://cloud.google.com/tpu/docs/v5e. TPUs also multiply float32 matrices at this
# rate by default: they round the inputs to bfloat16.
_V5E = {"flops_per_second": 197e12, "memory_bytes": 16e9}
SLICES = {
    name: Slice(num_chips=chips, topology=topology, accelerator_type=kind, **chip)
    for name, chips, topology, kind, chip in (
        ("v5e-4", 4, "v5e:2x2", "v5litepod-4", _V5E),
        ("v5e-16", 16, "v5e:4x4", "v5litepod-16", _V5E),
    )
}


def compile_step(settings):
    """Returns what the compiler reports about a step on one chip.

    Takes half a minute or more. Raises ValueError if the compiler fails.

    Args:
        settings: slice_name, a key of `SLICES`; config, as a dict; batch_size, over all
            chips; max_seq_length, max_predictions_per_seq; dtype, recompute_layers.

    Returns:
        A dict: fits; memory_bytes, without machine code; and if it fits, flops,
        bytes_accessed, in which XLA also counts the fast memory on the chip.
    """
    chips = SLICES[settings["slice_name"]]
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        # Away from Google Cloud, libtpu would wait for the metadata server.
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": chips.accelerator_type,
        "TPU_WORKER_HOSTNAMES": "localhost",
        # By default, libtpu refuses to load while another process has loaded it.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        environment["XLA_FLAGS"] = (
            f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={folder} "
            "--xla_dump_hlo_as_text"
        )
        case, result = pathlib.Path(folder, "case"), pathlib.Path(folder, "result")
        case.write_text(json.dumps(settings | {"xla_folder": folder}))
        done = subprocess.run(
            [sys.executable, __file__, str(case), str(result)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            reason = (done.stdout.strip().splitlines() or ["no output"])[-1]
            raise ValueError(f"The TPU compiler failed: {reason[:500]}")
        return json.loads(result.read_text())


def main():
    """Compiles the step of one file of settings, writes a report, ends the process."""
    case, result = map(pathlib.Path, sys.argv[1:])
    try:
        result.write_text(json.dumps(_compiled(json.loads(case.read_text()))))
    except Exception as error:
        sys.stderr.write(str(error).partition("\n")[0])
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # The compiler still works on the machine code.


def _compiled(settings):
    """Returns what `compile_step` returns.

    The program and its memory are known long before the machine code is, which takes
    most of the compiler's time. This function does not wait for it.
    """
    import jax

    model, optimizer = create(settings)
    replicated, by_example = _shardings(SLICES[settings["slice_name"]].topology)
    step = jax.jit(
        build_step(model, optimizer),
        in_shardings=(replicated, replicated, by_example, replicated),
        out_shardings=replicated,
        donate_argnums=(0, 1),  # Weights and slots are updated in place.
    )
    weights, slots = (
        [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in variables]
        for variables in (model.trainable_variables, optimizer.variables)
    )
    number = jax.ShapeDtypeStruct((), "int32")
    lowered = step.lower(weights, slots, batch_shapes(settings), number)
    folder = pathlib.Path(settings["xla_folder"])
    compiling = concurrent.futures.ThreadPoolExecutor(1).submit(lowered.compile)
    while not compiling.done() and not _text_of(folder, _FITS):
        time.sleep(0.2)
    usage = _CHIP_MEMORY.search(_text_of(folder, _MEMORY))
    needed = int(usage[1]) if usage else 0
    if not _text_of(folder, _FITS):
        # Other exhausted memories are also reported as "RESOURCE_EXHAUSTED".
        if needed > SLICES[settings["slice_name"]].memory_bytes:
            return {"fits": False, "memory_bytes": needed}
        raise compiling.exception() or ValueError("XLA did not write the program.")
    costs = _costs(_text_of(folder, _PROGRAM))
    return costs | {"fits": True, "memory_bytes": needed}


def _text_of(folder, end):
    """Returns the text that XLA wrote about the step; "" if there is none yet."""
    for path in folder.glob(f"*{_STEP}*.{end}"):
        return path.read_text(encoding="utf-8")
    return ""


def _costs(program):
    """Returns the FLOPs and bytes of a program, given its text."""
    import jax
    from jaxlib import _jax
    from jaxlib import xla_client

    module = xla_client.hlo.hlo_module_from_text(program)
    counted = _jax.hlo_module_cost_analysis(jax.devices("cpu")[0].client, module)
    return {
        "flops": counted["flops"],
        "bytes_accessed": counted["bytes accessed"],
    }


def create(settings):
    """Returns the built model and optimizer of a step. The optimizer clips."""
    from bert_tf.modeling import config as config_module
    from bert_tf.modeling import pretrainer
    from bert_tf.optimization import adam_weight_decay

    config = config_module.BertConfig.from_dict(settings["config"])
    model = pretrainer.BertPretrainer(config, dtype=settings["dtype"])
    model.build()
    model.bert.encoder.recomputes_layers = settings["recompute_layers"]
    optimizer = adam_weight_decay.create_optimizer(
        _LEARNING_RATE,
        _NUM_STEPS,
        _NUM_WARMUP_STEPS,
        clip_norm=adam_weight_decay.CLIP_NORM,
    )
    optimizer.build(model.trainable_variables)
    return model, optimizer


def build_step(model, optimizer):
    """Returns (weights, slots, batch, number of the step) -> (weights, slots, loss)."""
    import jax
    import keras

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
    import numpy as np
    from jax.experimental import topologies

    devices = topologies.get_topology_desc(topology_name=topology, platform="tpu")
    mesh = jax.sharding.Mesh(np.array(devices.devices).reshape(-1), ("examples",))
    spec = jax.sharding.PartitionSpec
    return tuple(
        jax.sharding.NamedSharding(mesh, s) for s in (spec(), spec("examples"))
    )


def batch_shapes(settings):
    """Returns the shapes and dtypes of a batch, `jax.ShapeDtypeStruct` by name."""
    import jax

    length, masked = settings["max_seq_length"], settings["max_predictions_per_seq"]
    sizes = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), length)
    sizes |= {"masked_lm_positions": masked, "masked_lm_ids": masked}
    sizes |= {"masked_lm_weights": masked, "next_sentence_labels": 1}
    return {
        name: jax.ShapeDtypeStruct(
            (settings["batch_size"], size),
            "float32" if name == "masked_lm_weights" else "int32",
        )
        for name, size in sizes.items()
    }


if __name__ == "__main__":
    main()
