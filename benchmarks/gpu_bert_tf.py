"""Part of gpu: this package's pretraining step on Keras's JAX backend."""

import json
import sys
import time

import jax
import jax.numpy as jnp
import report
import tpu_step

from bert_tf.modeling import config as config_module

# A backward pass has two matrix products for every one of the forward pass.
PASSES = 3


def main():
    """Compiles the step and serves measurements."""
    with open(sys.argv[1], encoding="utf-8") as file:
        case = json.load(file)
    tiny = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    if case["model"] == "tiny":
        config = config_module.BertConfig(
            vocab_size=64, intermediate_size=32, max_position_embeddings=64, **tiny
        )
    else:
        config = config_module.BertConfig.named(case["model"])
    settings = {
        "config": config.to_dict(),
        "batch_size": case["batch_size"],
        "max_seq_length": case["max_seq_length"],
        "max_predictions_per_seq": case["num_predictions"],
        "dtype": "mixed_bfloat16",
        "recompute_layers": False,
    }
    model, optimizer = tpu_step.create(settings)
    step = jax.jit(tpu_step.build_step(model, optimizer), donate_argnums=(0, 1))
    batch = {
        name: jnp.ones(shape.shape, shape.dtype)
        for name, shape in tpu_step.batch_shapes(settings).items()
    }
    state = [
        [jnp.array(v.value) for v in variables]
        for variables in (model.trainable_variables, optimizer.variables)
    ]

    def measure(num_steps=case["num_steps"]):
        started = time.perf_counter()
        for number in range(num_steps):
            *state[:], loss = step(*state, batch, number)
        loss.block_until_ready()
        return {"seconds": (time.perf_counter() - started) / num_steps}

    measure(2)  # Compiles.
    report.serve(
        measure,
        device=jax.devices()[0].device_kind,
        model_flops=PASSES * case["batch_size"] * _forward_flops(config, case),
        versions=report.versions("jax", "keras"),
    )


def _forward_flops(config, case):
    """Returns the FLOPs of one sequence's matrix products.

    They include the last layer's at all positions, although this package leaves most of
    them out, because the shares of the peak of both libraries refer to the same work.
    """
    length, hidden = case["max_seq_length"], config.hidden_size
    layer = 2 * length * (4 * hidden**2 + 2 * hidden * config.intermediate_size)
    layer += 4 * length**2 * hidden
    head = 2 * case["num_predictions"] * hidden * (hidden + config.vocab_size)
    return config.num_hidden_layers * layer + head + 2 * hidden**2


if __name__ == "__main__":
    main()
