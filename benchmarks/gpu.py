"""Compares pretraining on a GPU with Hugging Face's model on PyTorch.

Both take the whole step (both heads, gradients, clipping, the optimizer) in bfloat16 on
random pieces, one row in ten shorter than the others: this package on Keras's JAX
backend, PyTorch with its best attention and compiler. Steps are compiled side by side
and measured one after the other; a process that takes too long is left out.

    python benchmarks/gpu.py
    python benchmarks/gpu.py --models bert-tiny --lengths 16 --batch_sizes 2   # CPU

PyTorch may be in another environment; see `report.peers_python`.
"""

import concurrent.futures
import itertools
import statistics
import sys
import time

import numpy as np
import report

OURS, THEIRS = "bert_tf on JAX", "Hugging Face on PyTorch"
# Published dense bfloat16 figures, in FLOPs per second.
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L4": 121e12}
MODELS = ("bert-base-uncased", "bert-large-uncased")
TITLE = "Pretraining on a GPU"
COLUMNS = [
    *("model", "length", "batch", "library", "sequences per second"),
    *("time / ours", "share of peak"),
]
# A backward pass has two matrix products for every one of the forward pass.
PASSES = 3
# JAX would otherwise take most of the memory for each process.
SHARED_MEMORY = {"KERAS_BACKEND": "jax", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--models", nargs="+", default=list(MODELS))
    add("--lengths", nargs="+", type=int, default=[128, 512])
    add("--batch_sizes", nargs="+", type=int, default=[256, 64], help="one per length")
    add("--num_rounds", type=int, default=5, help="measurements of each library")
    add("--num_steps", type=int, default=10, help="steps of one measurement")
    add("--limit_s", type=int, default=150, help="longest time of a process")
    return parser.parse_args()


def main():
    """Measures all cases and writes the row of each as soon as it is known."""
    args = arguments()
    sizes, cases = list(zip(args.lengths, args.batch_sizes, strict=True)), []
    for model, (length, batch) in itertools.product(args.models, sizes):
        batch //= 2 if "large" in model else 1
        case = {"model": model, "max_seq_length": length, "batch_size": batch}
        case |= {"num_steps": args.num_steps, "num_predictions": -(-length * 15 // 100)}
        cases.append(case)
    cases = measure(OURS, cases, args)
    if report.has_package(report.peers_python(), "torch"):
        for first in range(0, len(cases), 2):  # More would not fit into memory.
            measure(THEIRS, cases[first : first + 2], args)


def measure(library, cases, args):
    """Measures one library; returns the cases, with what the other one needs."""

    def start(case):
        peer = "bert_tf" if library == OURS else "hugging_face"
        python = sys.executable if library == OURS else report.peers_python()
        command = report.command_of_peer(__file__, peer, case, python)
        try:
            return report.Peer(["timeout", str(args.limit_s), *command], SHARED_MEMORY)
        except RuntimeError as error:
            print(f"{library}: {error}", flush=True)

    with concurrent.futures.ThreadPoolExecutor() as threads:
        peers = list(threads.map(start, cases))
    done = []
    for case, peer in zip(cases, peers, strict=True):
        if peer is None:
            continue
        seconds = [peer.measure()["seconds"] for _ in range(args.num_rounds)]
        peer.close()
        median, versions = statistics.median(seconds), peer.facts.pop("versions")
        case = {"our_seconds": median, **peer.facts, **case}
        done.append(case)
        peak = next((PEAKS[one] for one in PEAKS if one in case["device"]), None)
        row = [
            *(case["model"], case["max_seq_length"], case["batch_size"], library),
            report.median_and_spread([case["batch_size"] / one for one in seconds], 1),
            median / case["our_seconds"],
            f"{case['model_flops'] / median / peak:.0%}" if peak else None,
        ]
        report.write_table(
            TITLE, COLUMNS, [row], num_keys=4, versions=versions, machine=case["device"]
        )
    return done


def random_batch(case, vocab_size):
    """Returns the features of a batch, in which one row in ten is not full."""
    rows, length = case["batch_size"], case["max_seq_length"]
    generator = np.random.default_rng(1)
    lengths = np.full((rows, 1), length)
    lengths[::10, 0] = generator.integers(length // 2, length, len(lengths[::10]))
    place = np.arange(length)[None, :]
    order = generator.random((rows, length)).argsort(axis=1)
    positions = np.sort(order[:, : case["num_predictions"]], axis=1)
    features = {
        "input_ids": generator.integers(0, vocab_size, (rows, length)),
        "input_mask": place < lengths,
        "segment_ids": place > lengths // 2,
        "masked_lm_positions": positions,
        "masked_lm_ids": generator.integers(0, vocab_size, positions.shape),
        "next_sentence_labels": generator.integers(0, 2, (rows, 1)),
    }
    features = {name: array.astype(np.int32) for name, array in features.items()}
    return features | {"masked_lm_weights": (positions < lengths).astype(np.float32)}


def serve_bert_tf(case):
    """Serves this package's pretraining step on Keras's JAX backend."""
    import jax
    import tpu_step

    from bert_tf.modeling import config as config_module

    config = config_module.BertConfig.named(case["model"])
    settings = {"dtype": "mixed_bfloat16", "recompute_layers": False}
    model, optimizer = tpu_step.create({"config": config.to_dict(), **settings})
    state = [
        [jax.numpy.array(v.value) for v in variables]
        for variables in (model.trainable_variables, optimizer.variables)
    ]
    batch = jax.device_put(random_batch(case, config.vocab_size))
    step = jax.jit(tpu_step.build_step(model, optimizer), donate_argnums=(0, 1))
    step = step.lower(*state, batch, np.int32(0)).compile()

    def measure_steps(num_steps=case["num_steps"]):
        started = time.perf_counter()
        for number in range(num_steps):
            *state[:], loss = step(*state, batch, np.int32(number))
        loss.block_until_ready()
        return {"seconds": (time.perf_counter() - started) / num_steps}

    def measure_warm():
        measure_steps(2)
        return measure_steps()

    report.serve(
        measure_warm,
        config=config.to_dict(),
        device=jax.devices()[0].device_kind,
        model_flops=PASSES * case["batch_size"] * forward_flops(config, case),
        versions=report.versions("jax", "keras"),
    )


def forward_flops(config, case, num_last=None):
    """Returns the FLOPs of one sequence's matrix products.

    `num_last` is the number of positions of the last layer. Default: all, although this
    package leaves most of them out, because both libraries are compared by it.
    """
    length, hidden = case["max_seq_length"], config.hidden_size

    def layer(num_positions):
        of_each = 2 * hidden * (hidden + config.intermediate_size + length)
        return 4 * length * hidden**2 + 2 * num_positions * of_each

    head = 2 * case["num_predictions"] * hidden * (hidden + config.vocab_size)
    layers = (config.num_hidden_layers - 1) * layer(length) + layer(num_last or length)
    return layers + head + 2 * hidden**2


def serve_hugging_face(case):
    """Serves Hugging Face's pretraining model on PyTorch."""
    import torch
    import transformers

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    config = transformers.BertConfig(**case["config"], attn_implementation="sdpa")
    model = transformers.BertForPreTraining(config).to(device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, weight_decay=0.01, fused=device == "cuda"
    )
    # PyTorch's compiler needs a C compiler on CPUs; there it is only a trial.
    forward = torch.compile(model) if device == "cuda" else model
    features = random_batch(case, config.vocab_size)
    rows, places = np.nonzero(features["masked_lm_weights"])
    labels = np.full(features["input_ids"].shape, -100)
    at = (rows, features["masked_lm_positions"][rows, places])
    labels[at] = features["masked_lm_ids"][rows, places]
    batch = {
        "input_ids": features["input_ids"],
        "attention_mask": features["input_mask"],
        "token_type_ids": features["segment_ids"],
        "labels": labels,
        "next_sentence_label": features["next_sentence_labels"][:, 0],
    }
    batch = {k: torch.tensor(v, dtype=torch.long).to(device) for k, v in batch.items()}

    def measure_steps(num_steps=case["num_steps"]):
        started = time.perf_counter()
        for _ in range(num_steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = forward(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        float(loss.detach())  # Waits for the device.
        return {"seconds": (time.perf_counter() - started) / num_steps}

    measure_steps(3)  # Compiles.
    report.serve(measure_steps, versions=report.versions("torch", "transformers"))


if __name__ == "__main__":
    report.run(main, bert_tf=serve_bert_tf, hugging_face=serve_hugging_face)
