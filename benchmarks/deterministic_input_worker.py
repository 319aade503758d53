"""Part of deterministic_input: reads batches as run_pretraining does."""

import hashlib
import itertools
import sys
import tempfile
import time

import report
import tensorflow as tf

from bert_tf.data import tfrecord
from bert_tf.pretraining import dynamic_masking
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import text_examples
from bert_tf.tokenization import vocabulary as vocabulary_module

LENGTH = 128
SEED = pretraining_options.RunPretrainingOptions.random_seed
WARM_UP = 20


def main():
    """Opens the records and answers the driver."""
    path, mode, vocab_file, *numbers = sys.argv[1:]
    batch_size, num_batches, pause = map(int, numbers)
    if mode == "deterministic":
        tf.config.experimental.enable_op_determinism()
    with tempfile.TemporaryDirectory() as folder:
        serve(path, vocab_file, folder, batch_size, num_batches, pause)


def serve(path, vocab_file, folder, batch_size, num_batches, pause):
    """Times the batches of an input as often as the driver asks."""
    kind, source = opened(path, vocab_file, folder)

    def batches():
        numbers = {"batch_size": batch_size, "num_steps": WARM_UP + num_batches}
        return iter(source.training_batches(**numbers, seed=SEED))

    def seconds_per_batch(seconds):
        iterator = batches()
        for _ in range(WARM_UP):
            next(iterator)
        started = time.perf_counter()
        for _ in iterator:
            time.sleep(seconds)
        return (time.perf_counter() - started) / num_batches

    digest = hashlib.sha256()
    for batch in itertools.islice(batches(), WARM_UP):
        for name in sorted(batch):
            digest.update(batch[name].numpy().tobytes())
    report.serve(
        lambda: {
            "alone": seconds_per_batch(0),
            "with_steps": seconds_per_batch(pause / 1e3),
        },
        checksum=digest.hexdigest(),
        kind=kind,
    )


def opened(path, vocab_file, folder):
    """Returns the kind of input in words, and its source."""
    vocabulary = vocabulary_module.Vocabulary.load(vocab_file)
    options = pretraining_options.RunPretrainingOptions(
        input_file=path, output_dir=folder, max_seq_length=LENGTH
    )
    if path.endswith(".txt"):
        text = text_examples.TextExamples(
            [path], options, vocabulary, do_lower_case=True
        )
        return "text", text.training_source(folder, None, is_written=False)
    records = tfrecord.RecordFiles([path])
    is_masked = dynamic_masking.is_masked(records.schema)
    source = dynamic_masking.create_source(records, vocabulary, options)
    return "masked records" if is_masked else "records masked in training", source


if __name__ == "__main__":
    main()
