"""Times the input pipeline of pretraining with and without --deterministic.

The files are local: records of create_pretraining_data, masked or not, or text.
Unmasked records are masked as they are read:

    python benchmarks/deterministic_input.py --vocab_file=vocab.txt \\
      --input_files masked.tfrecord unmasked.tfrecord text.txt
"""

import pathlib
import sys

import report

TITLE = "Cost of --deterministic: the input pipeline"
WORKER = pathlib.Path(__file__).with_name("deterministic_input_worker.py")
MODES = ("default", "deterministic")
HEADER = (
    *("input", "batches alone, ms", "with --deterministic"),
    *("steps of {pause} ms", "with --deterministic"),
)
TEXT = """\
Milliseconds per batch of {batch_size} × 128 pieces, for the pipeline alone and for a
loop that sleeps for {pause} ms after each batch, as if an accelerator trained on it:
median (smallest to largest) of {rounds} interleaved rounds of {num_batches} batches. No
model was trained. The batches of both modes were bit-identical.

"""


def main():
    """Measures and writes the section of RESULTS.md."""
    given = arguments()
    peers = {
        (path, mode): report.Peer(
            [sys.executable, WORKER, path, mode, *settings(given)]
        )
        for path in given.input_files
        for mode in MODES
    }
    for path in given.input_files:
        checksums = {peers[path, mode].facts["checksum"] for mode in MODES}
        if len(checksums) > 1:
            raise RuntimeError(f"{path}: --deterministic reads different batches.")
    found = report.interleave(peers, given.rounds)
    rows = []
    for path in given.input_files:
        facts = peers[path, MODES[0]].facts
        row = [facts["kind"]]
        for name in ("alone", "with_steps"):
            for mode in MODES:
                values = [1e3 * one[name] for one in found[path, mode]]
                row.append(report.median_and_spread(values, digits=1))
        rows.append(row)
    for peer in peers.values():
        peer.close()
    text = TEXT.format(**vars(given))
    header = [title.format(pause=given.pause) for title in HEADER]
    report.write_section(
        TITLE,
        text + report.table(header, rows),
        all_versions=report.versions("tensorflow"),
    )


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add("--input_files", nargs="+", required=True, help="TFRecord files or text")
    add("--vocab_file", required=True, help="vocabulary of the records")
    add("--batch_size", type=int, default=256, help="records per batch")
    add("--num_batches", type=int, default=100, help="batches of a measurement")
    add("--pause", type=int, default=20, help="milliseconds between two batches")
    add("--rounds", type=int, default=7, help="measurements of each")
    return parser.parse_args()


def settings(given):
    """Returns the remaining arguments of a worker."""
    return [given.vocab_file, given.batch_size, given.num_batches, given.pause]


if __name__ == "__main__":
    main()
