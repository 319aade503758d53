"""The whole pretraining step on Keras's JAX backend, to compile it or to measure it.

Training runs on TensorFlow. Keras has one backend per process, so this module is used
in processes of their own, and it imports no TensorFlow. `tpu_compilation` starts one to
compile the step for a TPU: libtpu has the compiler of the real chips and needs none.
"""

import json
import pathlib
import re
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


def write_report(settings_file: str, report_file: str) -> None:
    """Compiles the step that a file describes and writes what the compiler reports.

    Args:
        settings_file: JSON of `tpu_compilation.StepSettings`, with `topology`.
        report_file: JSON with the fields of `tpu_compilation.CompiledStep`.
    """
    settings = json.loads(pathlib.Path(settings_file).read_text(encoding="utf-8"))
    report = compile_step(settings)
    pathlib.Path(report_file).write_text(json.dumps(report), encoding="utf-8")


def compile_step(settings: dict[str, Any]) -> dict[str, Any]:
    """Returns what the compiler reports about a step; see `write_report`."""
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
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        needed = re.search(r"Used ([\d.]+)([KMG]) of", str(error))
        if needed is None:
            raise
        unit = {"K": 2**10, "M": 2**20, "G": 2**30}[needed[2]]
        return {"fits": False, "memory_bytes": float(needed[1]) * unit}
    return _report(compiled) | {"compile_seconds": time.monotonic() - started}


def _report(compiled):
    cost, memory = compiled.cost_analysis(), compiled.memory_analysis()
    return {
        "fits": True,
        "memory_bytes": memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.generated_code_size_in_bytes,
        "flops": cost["flops"],
        "bytes_accessed": cost["bytes accessed"],
        "traffic_bytes": memory_traffic.memory_bytes(compiled.as_text()),
    }


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
                outputs = model(features, training=True, dropout_keys=keys)
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
