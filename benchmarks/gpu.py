"""Compares pretraining on a GPU with Hugging Face's model on PyTorch.

Both take the whole step (both heads, gradients, clipping, the optimizer) in bfloat16:
this package on Keras's JAX backend, PyTorch with its best attention on the same card.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --models tiny --lengths 16 --batch_sizes 2   # on a CPU

PyTorch is in another environment; see `report.peers_python`.
"""

import itertools
import statistics
import time

import report

OURS, THEIRS = "bert_tf on JAX", "Hugging Face on PyTorch"
# Published dense bfloat16 figures, in FLOPs per second.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12}
MODELS = ("bert-base-uncased", "bert-large-uncased")
COLUMNS = [
    *("model", "length", "batch", "library", "sequences per second"),
    *("time / ours", "share of peak"),
]
# A backward pass has two matrix products for every one of the forward pass.
PASSES = 3


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--models", nargs="+", default=list(MODELS), help="models; tiny is for tests")
    add("--lengths", nargs="+", type=int, default=[128, 512])
    add("--batch_sizes", nargs="+", type=int, default=[256, 64], help="one per length")
    add("--num_rounds", type=int, default=5, help="measurements of each library")
    add("--num_steps", type=int, default=10, help="steps of one measurement")
    return parser.parse_args()


def main():
    """Measures all cases and writes the rows of each."""
    args = arguments()
    sizes = zip(args.lengths, args.batch_sizes, strict=True)
    for model, (length, batch) in itertools.product(args.models, list(sizes)):
        case = {"model": model, "max_seq_length": length, "batch_size": batch}
        case |= {"num_steps": args.num_steps, "num_predictions": -(-length * 15 // 100)}
        seconds, facts, versions = measure(case, args.num_rounds)
        device = facts["device"]
        report.write_table(
            "Pretraining on a GPU",
            COLUMNS,
            [[model, length, batch, *row] for row in rows_of(seconds, facts, batch)],
            num_keys=4,
            versions=versions,
            machine=device,
        )


def measure(case, num_rounds):
    """Returns {library: seconds per step}, the facts of our process, and versions."""
    peers = {
        OURS: report.start(__file__, "bert_tf", case, env={"KERAS_BACKEND": "jax"})
    }
    python = report.peers_python()
    if report.has_package(python, "torch"):
        peers[THEIRS] = report.start(__file__, "hugging_face", case, python=python)
    rounds = report.interleave(peers, num_rounds)
    seconds = {name: [one["seconds"] for one in rounds[name]] for name in peers}
    return seconds, peers[OURS].facts, report.all_versions(peers)


def rows_of(seconds, facts, batch):
    """Returns the cells of each library after those that say what was measured."""
    peak = next((PEAKS[name] for name in PEAKS if name in facts["device"]), None)
    ours = statistics.median(seconds[OURS])
    rows = []
    for name, values in seconds.items():
        median = statistics.median(values)
        speeds = report.median_and_spread([batch / value for value in values], 1)
        share = f"{facts['model_flops'] / median / peak:.0%}" if peak else None
        rows.append([name, speeds, median / ours, share])
    return rows


def serve_bert_tf(case):
    """Serves this package's pretraining step on Keras's JAX backend."""
    import jax
    import jax.numpy as jnp
    import tpu_step

    config = config_of(case)
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

    def measure_steps(num_steps=case["num_steps"]):
        started = time.perf_counter()
        for number in range(num_steps):
            *state[:], loss = step(*state, batch, number)
        loss.block_until_ready()
        return {"seconds": (time.perf_counter() - started) / num_steps}

    measure_steps(2)  # Compiles.
    report.serve(
        measure_steps,
        device=jax.devices()[0].device_kind,
        model_flops=PASSES * case["batch_size"] * forward_flops(config, case),
        versions=report.versions("jax", "keras"),
    )


def config_of(case):
    """Returns the configuration of a model."""
    from bert_tf.modeling import config as config_module

    if case["model"] != "tiny":
        return config_module.BertConfig.named(case["model"])
    tiny = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    return config_module.BertConfig(
        vocab_size=64, intermediate_size=32, max_position_embeddings=64, **tiny
    )


def forward_flops(config, case):
    """Returns the FLOPs of one sequence's matrix products.

    They include the last layer's at all positions, although this package leaves most of
    them out, because the shares of the peak of both libraries refer to the same work.
    """
    length, hidden = case["max_seq_length"], config.hidden_size
    layer = 2 * length * (4 * hidden**2 + 2 * hidden * config.intermediate_size)
    layer += 4 * length**2 * hidden
    head = 2 * case["num_predictions"] * hidden * (hidden + config.vocab_size)
    return config.num_hidden_layers * layer + head + 2 * hidden**2


def serve_hugging_face(case):
    """Serves Hugging Face's pretraining model on PyTorch."""
    import torch
    import transformers

    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = transformers.BertConfig(
        **config_of(case).to_dict(), attn_implementation="sdpa"
    )
    model = transformers.BertForPreTraining(config).to(device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, weight_decay=0.01, fused=device == "cuda"
    )
    # PyTorch's compiler needs a C compiler on CPUs; there it is only a trial.
    forward = torch.compile(model) if device == "cuda" else model
    shape = (case["batch_size"], case["max_seq_length"])
    ids = torch.ones(shape, dtype=torch.long, device=device)
    labels = torch.full(shape, -100, device=device)
    labels[:, : case["num_predictions"]] = 1
    batch = {
        "input_ids": ids,
        "attention_mask": ids,
        "token_type_ids": ids,
        "labels": labels,
        "next_sentence_label": ids[:, 0],
    }

    def measure_steps(num_steps=case["num_steps"]):
        started = time.perf_counter()
        for _ in range(num_steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = forward(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        float(loss)  # Waits for the device.
        return {"seconds": (time.perf_counter() - started) / num_steps}

    measure_steps(2)
    report.serve(measure_steps, versions=report.versions("torch", "transformers"))


if __name__ == "__main__":
    report.run(main, bert_tf=serve_bert_tf, hugging_face=serve_hugging_face)
