"""Times the input pipeline, from files to batches, against training BERT-Base.

For every kind of records and masks, and for raw text, it measures the examples per
second of the pipeline alone. Then BERT-Base trains for some steps on the same machine,
and the table says how many times faster the pipeline is.

    python benchmarks/input_pipeline.py --input_file=wiki.txt --vocab_file=vocab.txt
"""

import json
import os
import platform
import re
import shlex
import statistics
import sys
import tempfile
import time

import report
import tensorflow as tf

from bert_tf.data import tfrecord
from bert_tf.pretraining import dynamic_masking
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import text_examples
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from bert_tf.tokenization import vocabulary as vocabulary_module

BATCH_SIZE = 32
SEED = pretraining_options.RunPretrainingOptions.random_seed
# Name -> options of create_pretraining_data, options of run_pretraining. Instead of the
# former, TEXT: training reads the text itself.
TEXT = None
KINDS = {
    "masked records": ({}, {}),
    "packed records": ({"packed_rows": True}, {}),
    "masked in training": ({"dynamic_masking": True}, {}),
    "whole words": ({"dynamic_masking": True}, {"do_whole_word_mask": True}),
    "spans": ({"dynamic_masking": True}, {"masking": "span"}),
    "packed, whole words": (
        {"dynamic_masking": True, "packed_rows": True},
        {"do_whole_word_mask": True},
    ),
    "text": (TEXT, {}),
    "text, whole words": (TEXT, {"do_whole_word_mask": True}),
    "text, spans": (TEXT, {"masking": "span"}),
}


def arguments():
    """Returns the parsed command line."""
    parser = report.argument_parser(__doc__)
    add = parser.add_argument
    add(
        "--input_file",
        required=True,
        help="text with one sentence per line; 1 MB is enough",
    )
    add("--vocab_file", required=True, help="vocabulary with one word piece per line")
    add("--num_batches", type=int, default=200, help=f"batches of {BATCH_SIZE} to time")
    add("--rounds", type=int, default=5, help="measurements of each kind")
    add("--train_steps", type=int, default=4, help="steps of BERT-Base; 0 skips it")
    return parser.parse_args()


def create(options, name, flags, folder):
    """Creates records of one kind. Returns their path."""
    path = os.path.join(folder, re.sub(r"\W+", "_", name))
    pretraining_data_workflow.create_data(
        pretraining_data_options.CreatePretrainingDataOptions(
            input_file=options.input_file,
            output_file=path,
            vocab_file=options.vocab_file,
            dupe_factor=2,
            num_workers=1,
            **flags,
        )
    )
    return path


def source_of(path, options, flags):
    """Returns the source that training reads from."""
    run = pretraining_options.RunPretrainingOptions(
        input_file=path, output_dir="unused", **flags
    )
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    return dynamic_masking.create_source(tfrecord.RecordFiles([path]), vocabulary, run)


def text_source(options, flags, folder):
    """Returns the source that training on text reads from."""
    run = pretraining_options.RunPretrainingOptions(
        input_file=options.input_file, output_dir=folder, **flags
    )
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    examples = text_examples.TextExamples(
        [options.input_file], run, vocabulary, do_lower_case=True
    )
    return examples.training_source(folder, None, is_written=False)


def examples_per_second(source, num_batches):
    """Returns the speed of the pipeline alone, without its start-up."""
    batches = source.training_batches(
        batch_size=BATCH_SIZE, num_steps=num_batches + 20, seed=SEED
    )
    iterator = iter(batches)
    for _ in range(20):
        next(iterator)
    started = time.perf_counter()
    for _ in range(num_batches):
        next(iterator)
    return num_batches * BATCH_SIZE / (time.perf_counter() - started)


def consumption(options, path, folder):
    """Returns the examples per second that BERT-Base trains on, with batch size 8."""
    output_dir = os.path.join(folder, "base")
    config_file = os.path.join(folder, "bert_config.json")
    size = len(vocabulary_module.Vocabulary.load(options.vocab_file))
    with open(config_file, "w", encoding="utf-8") as file:
        json.dump({"vocab_size": size}, file)  # The other defaults are BERT-Base.
    pretraining_workflow.train(
        pretraining_options.RunPretrainingOptions(
            input_file=path,
            output_dir=output_dir,
            bert_config_file=config_file,
            train_batch_size=8,
            num_train_steps=options.train_steps,
            num_warmup_steps=1,
            iterations_per_loop=1,
            log_every_steps=1,
        )
    )
    with open(os.path.join(output_dir, "metrics.jsonl"), encoding="utf-8") as file:
        speeds = [json.loads(line)["examples_per_second"] for line in file]
    return statistics.median(speeds[1:])  # The first step includes tracing.


def main():
    """Runs the benchmark and prints the results."""
    options = arguments()
    speeds = {name: [] for name in KINDS}
    base = None
    with tempfile.TemporaryDirectory() as folder:
        sources = {}
        for name, (create_flags, train_flags) in KINDS.items():
            if create_flags is TEXT:
                sources[name] = text_source(options, train_flags, folder)
                continue
            path = create(options, name, create_flags, folder)
            sources[name] = source_of(path, options, train_flags)
        for _ in range(options.rounds):
            for name, source in sources.items():
                speeds[name].append(examples_per_second(source, options.num_batches))
        if options.train_steps:
            path = os.path.join(folder, "masked_records")
            base = consumption(options, path, folder)
    print(f"\n{shlex.join([sys.executable, *sys.argv])}")
    print(
        f"Python {platform.python_version()}, TensorFlow {tf.__version__}, "
        f"{report.num_cores()} cores, load {os.getloadavg()[0]:.1f}"
    )
    if base:
        print(f"BERT-Base, 8 x 128, float32: {base:.2f} examples/s")
    for name, values in speeds.items():
        median = statistics.median(values)
        times = f", {median / base:,.0f} times BERT-Base" if base else ""
        print(
            f"{name:20} {median:8,.0f} examples/s ({min(values):,.0f} to "
            f"{max(values):,.0f}){times}"
        )


if __name__ == "__main__":
    main()
