"""Compiles the pretraining step for TPUs that this machine does not have.

For every case, the batch grows until the step no longer fits. A case takes half a
minute of processor time or more, so finished cases are kept in --cases_file and not
compiled again until JAX, libtpu, Keras or the sources of the step change:

    python benchmarks/tpu_compile.py --slices v5e-4 --models bert-base-uncased

Needs JAX and libtpu: pip install -e '.[tpu-compile]'.
"""

import argparse
import dataclasses
import hashlib
import itertools
import json
import pathlib

import report

from bert_tf.modeling import config as config_module
from bert_tf.pretraining import tpu_compilation
from bert_tf.training import tpu_slices

TITLE = "Pretraining steps compiled for TPUs"
MODELS = ("bert-base-uncased", "bert-large-uncased")
PACKAGES = ("jax", "libtpu", "keras")
DTYPES = ("mixed_bfloat16", "float32")
PREDICTIONS = {128: 20, 512: 77}  # Masked pieces per sequence, 15 %.
COLUMNS = [
    *("TPU", "model", "length", "dtype", "recomputes layers", "sequences per chip"),
    *("memory, GB", "TFLOP", "model's TFLOP", "traffic, GB", "XLA's count, GB"),
    *(
        "ms by FLOPs",
        "ms by traffic",
        "sequences per second (all chips)",
        "share of peak",
    ),
]
TEXT = """\
The whole step (both heads, gradients, clipping, the optimizer) on Keras's JAX backend,
compiled by libtpu for chips that this machine does not have. **Nothing here was run.**
All figures except the sequences per second are per chip and step. "Model's TFLOP" are
the matrix products of the model, without recomputation. "Memory" includes weights,
slots and activations, but not the machine code. "Traffic" is what the program moves
from and to the chip's memory; XLA's count ("bytes accessed") also includes the fast
memory on the chip and counts a whole array for each slice that is prefetched.
Milliseconds, sequences per second and share of peak are the best that the published
peak and bandwidth allow: v5e 197 TFLOP/s, 819 GB/s, 16 GB; v6e 918 TFLOP/s, 1,640 GB/s,
32 GB. The share of peak is computed from the model's FLOPs and the slower of the two
limits.
"""


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--slices", nargs="+", default=list(tpu_slices.SLICES))
    add("--models", nargs="+", default=list(MODELS))
    add("--lengths", nargs="+", type=int, default=list(PREDICTIONS))
    add("--dtypes", nargs="+", default=list(DTYPES))
    add("--recompute", nargs="+", type=int, default=[0, 1], help="0, 1 or both")
    add("--first_batch", type=int, default=16, help="smallest batch size per chip")
    add("--max_batch", type=int, default=1024, help="largest batch size per chip")
    add("--factor", type=int, default=2, help="growth of the batch size per case")
    add("--cases_file", default=str(report.ROOT / "benchmarks" / "tpu_cases.jsonl"))
    return parser.parse_args()


def main():
    """Compiles all cases and writes the section after each."""
    args = arguments()
    tpu_compilation.check_packages()
    cases = Cases(pathlib.Path(args.cases_file))
    for name, model, length, dtype, recomputes in itertools.product(
        args.slices, args.models, args.lengths, args.dtypes, args.recompute
    ):
        batch = args.first_batch
        while batch <= args.max_batch:
            settings = tpu_compilation.StepSettings(
                config=config_module.BertConfig.named(model),
                slice_name=name,
                batch_size=batch * tpu_slices.SLICES[name].num_chips,
                max_seq_length=length,
                max_predictions_per_seq=PREDICTIONS.get(length, round(0.15 * length)),
                dtype=dtype,
                recompute_layers=bool(recomputes),
            )
            if not cases.compiled(model, settings).fits:
                break
            batch *= args.factor
        cases.write_section()


def origin():
    """Returns what the figures depend on besides the settings: {name: version}.

    "sources" is a checksum of the model, the optimizers, the step, the flags of the
    compiler and the way in which memory traffic is counted.
    """
    package = report.ROOT / "bert_tf"
    paths = [*package.glob("modeling/*.py"), *package.glob("optimization/*.py")]
    compilation = "jax_step.py", "memory_traffic.py", "tpu_compilation.py"
    paths += [package / "pretraining" / name for name in compilation]
    paths.append(package / "islands.py")
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return report.versions(*PACKAGES) | {"sources": digest.hexdigest()[:8]}


class Cases:
    """Compiled steps, kept in a file of JSON lines.

    Cases of other versions or sources stay in the file, but are not used.
    """

    def __init__(self, path):
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._origin = origin()
        cases = [json.loads(line) for line in lines]
        self._found = {
            one["key"]: one for one in cases if one.get("origin") == self._origin
        }

    def compiled(self, model, settings):
        """Returns the `CompiledStep`; compiles it unless the file has it."""
        chips = settings.slice.num_chips
        key = " ".join(
            [
                *(settings.slice_name, model, str(settings.max_seq_length)),
                *(settings.dtype, "yes" if settings.recompute_layers else "no"),
                str(settings.batch_size // chips),
            ]
        )
        if key not in self._found:
            step = tpu_compilation.compile_step(settings)
            self._found[key] = {
                "key": key,
                "origin": self._origin,
                "model_flops": settings.model_flops,
                "step": dataclasses.asdict(step),
            }
            print(self._found[key], flush=True)
            with self._path.open("a") as file:
                file.write(json.dumps(self._found[key]) + "\n")
        return tpu_compilation.CompiledStep(**self._found[key]["step"])

    def write_section(self):
        """Writes all cases that are still valid into RESULTS.md, in a fixed order."""
        cases = sorted(self._found.values(), key=_place)
        body = TEXT + "\n" + report.table(COLUMNS, map(_row, cases))
        report.write_section(TITLE, body, all_versions=self._origin, on_cpu=False)


def _place(case):
    """Returns what the rows are sorted by."""
    name, model, length, dtype, recomputes, batch = case["key"].split(" ")
    slices = list(tpu_slices.SLICES)
    setting = slices.index(name), model, int(length), DTYPES.index(dtype)
    return *setting, recomputes != "no", int(batch)


def _row(case):
    step = tpu_compilation.CompiledStep(**case["step"])
    name, *setting, batch = case["key"].split(" ")
    row = [name, *setting, batch, step.memory_bytes / 1e9]
    if not step.fits:
        return [*row, "does not fit", *[None] * 7]
    chip, flops = tpu_slices.SLICES[name].chip, case["model_flops"]
    chips = tpu_slices.SLICES[name].num_chips
    seconds = step.seconds(chip)
    return [
        *row,
        *(step.flops / 1e12, flops / 1e12),
        *(step.traffic_bytes / 1e9, step.bytes_accessed / 1e9),
        1e3 * step.flops / chip.flops_per_second,
        1e3 * step.traffic_bytes / chip.bytes_per_second,
        f"{int(batch) * chips / seconds:,.0f}",
        f"{flops / seconds / chip.flops_per_second:.0%}",
    ]


if __name__ == "__main__":
    main()
