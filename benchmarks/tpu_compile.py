"""Compiles the pretraining step for TPUs that this machine does not have.

For every case, the batch grows until the step no longer fits. A case takes half a
minute of processor time or more:

    python benchmarks/tpu_compile.py --slices v5e-4 --models bert-base-uncased

Needs JAX and libtpu: pip install -e '.[tpu-compile]'.
"""

import itertools

import gpu
import report
import tpu_step

from bert_tf.modeling import config as config_module

TITLE = "Pretraining steps compiled for TPUs"
MODELS = ("bert-base-uncased", "bert-large-uncased")
PACKAGES = ("jax", "libtpu", "keras")
DTYPES = ("mixed_bfloat16", "float32")
PREDICTIONS = {128: 20, 512: 77}  # Masked pieces per sequence, 15 %.
COLUMNS = [
    *("model", "length", "dtype", "recomputes layers", "sequences per chip"),
    *("memory, GB", "TFLOP", "model's TFLOP", "bytes accessed, GB", "ms by FLOPs"),
]


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--slices", nargs="+", default=list(tpu_step.SLICES))
    add("--models", nargs="+", default=list(MODELS))
    add("--lengths", nargs="+", type=int, default=list(PREDICTIONS))
    add("--dtypes", nargs="+", default=list(DTYPES))
    add("--recompute", nargs="+", type=int, default=[0, 1], help="0, 1 or both")
    add("--first_batch", type=int, default=16, help="smallest batch size per chip")
    add("--max_batch", type=int, default=1024, help="largest batch size per chip")
    add("--factor", type=int, default=2, help="growth of the batch size per case")
    return parser.parse_args()


def main():
    """Compiles all cases and writes the row of each."""
    args = arguments()
    for name, model, length, dtype, recomputes in itertools.product(
        args.slices, args.models, args.lengths, args.dtypes, args.recompute
    ):
        batch, fits = args.first_batch, True
        while fits and batch <= args.max_batch:
            settings = {
                "slice_name": name,
                "config": config_module.BertConfig.named(model).to_dict(),
                "batch_size": batch * tpu_step.SLICES[name].num_chips,
                "max_seq_length": length,
                "max_predictions_per_seq": PREDICTIONS.get(length, length * 15 // 100),
                "dtype": dtype,
                "recompute_layers": bool(recomputes),
            }
            step = tpu_step.compile_step(settings)
            fits = step["fits"]
            case = model, length, dtype, "yes" if recomputes else "no", batch
            report.write_table(
                TITLE,
                COLUMNS,
                [[*case, *_figures(settings, step)]],
                num_keys=5,
                versions=report.versions(*PACKAGES),
                machine=f"TPU {name}",
            )
            batch *= args.factor


def _figures(settings, step):
    memory = step["memory_bytes"] / 1e9
    if not step["fits"]:
        return [memory, "does not fit", *[None] * 3]
    chips = tpu_step.SLICES[settings["slice_name"]]
    flops = _model_flops(settings, chips.num_chips)
    return [
        memory,
        *(step["flops"] / 1e12, flops / 1e12, step["bytes_accessed"] / 1e9),
        1e3 * step["flops"] / chips.flops_per_second,
    ]


def _model_flops(settings, num_chips):
    """Returns the FLOPs per chip of the model's matrix products, none recomputed."""
    config = config_module.BertConfig.from_dict(settings["config"])
    case = {**settings, "num_predictions": settings["max_predictions_per_seq"]}
    forward = gpu.forward_flops(config, case, num_last=case["num_predictions"] + 1)
    return gpu.PASSES * forward * settings["batch_size"] / num_chips


if __name__ == "__main__":
    main()
