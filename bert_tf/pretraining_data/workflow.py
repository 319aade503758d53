"""Text files to TFRecord files: the work of create_pretraining_data."""

import contextlib
import dataclasses
import os

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.data import corpus as data_corpus
from bert_tf.data import tfrecord
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import features
from bert_tf.pretraining_data import journal as journal_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import processes
from bert_tf.tokenization import vocabulary as vocabulary_module

# Shards that a small corpus is cut into for several processes; half as many, and so on,
# where each would have less than the fewest megabytes. More than the most would only
# take more memory.
_SHARDS_OF_A_SMALL_CORPUS = 16
_FEWEST_MEGABYTES = 1.5
_MOST_MEGABYTES = 8.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreationReport:
    """What was read and written."""

    counts: counts_module.Counts  # Documents, pieces, sequences and so on.
    is_masked: bool  # Whether masks were drawn; else training draws them.
    output_files: tuple[str, ...]  # The files written.
    max_seq_length: int  # Places of a sequence.
    has_next_sentence: bool  # Whether the sequences are pairs.
    num_shards: int  # Shards of the corpus.
    num_resumed: int  # Of these, how many an earlier run had finished.
    # Of all processes together, each at its own peak; with a runner of Beam's, of this
    # process alone.
    peak_memory_mb: float

    @property
    def mean_fill(self) -> float:
        """Share of the places that is no padding."""
        return self.counts.filled / (self.counts.rows * self.max_seq_length)

    def __str__(self) -> str:
        counts = self.counts
        lines = {
            "documents": f"{counts.documents:,}",
            "sentences": f"{counts.sentences:,}",
            "word pieces": f"{counts.pieces:,}",
            "[UNK]": f"{counts.unknown / counts.pieces:.3%} of the pieces",
            "shards": f"{self.num_shards:,}",
            "sequences": f"{counts.instances:,}",
            "mean fill": f"{self.mean_fill:.1%} of {self.max_seq_length} places",
            "masked": f"{counts.masked / counts.filled:.2%} of the filled places",
        }
        if counts.rows < counts.instances:
            places = counts.instances * self.max_seq_length
            lines["rows"] = (
                f"{counts.rows:,}: {1 - self.mean_fill:.1%} padding, with a sequence a "
                f"row {1 - counts.filled / places:.1%}"
            )
        if not self.is_masked:
            lines["masked"] = "nothing; run_pretraining masks"
        if self.num_resumed:
            lines["shards"] += f", {self.num_resumed:,} of them by an earlier run"
        if self.has_next_sentence:
            share = counts.random_next / counts.instances
            lines["random next"] = f"{share:.1%} of the sequences"
        lines["peak memory"] = f"{self.peak_memory_mb:,.0f} MB"
        lines["written"] = ", ".join(self.output_files)
        return "\n".join(f"{name + ':':<14}{value}" for name, value in lines.items())


def create_data(
    options: pretraining_data_options.CreatePretrainingDataOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> CreationReport:
    """Writes the masked sequences of text files as TFRecord files.

    With fewer shards than output files the sequences go to the files in turn, as in
    2018; else shard i goes to file i mod F.

    Args:
        options: what to read, make and write.
        progress: told how many MB of text are done.

    Returns:
        What was read and written. It depends on the input, the flags and the seed
        alone, the peak memory apart.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: text that is not UTF-8, no text, one document where pairs are
            wanted, a file that is no vocabulary, or an output file that is read too.
    """
    inputs = files.expand(options.input_file)
    options_module.check_not_overwritten(
        outputs={"output_file": options.output_file},
        inputs={"input_file": inputs, "vocab_file": [options.vocab_file]},
    )
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    shards = _shards(inputs, options)
    if not shards:
        raise ValueError(f"There is no text in {', '.join(inputs)}.")
    counts = counts_module.Counts()
    with contextlib.ExitStack() as stack:
        journal = None
        if len(shards) > 1:
            digest = journal_module.fingerprint(options, vocabulary, inputs, shards)
            journal = stack.enter_context(
                journal_module.Journal(options.output_file[0], digest)
            )
        writers = [
            stack.enter_context(_writer(path, options, vocabulary))
            for path in options.output_file
        ]
        work = processes.ShardWork(
            shards=shards,
            options=options,
            vocabulary=vocabulary,
            writers=writers,
            counts=counts,
            journal=journal,
        )
        peak_memory_mb = processes.write_shards(work, progress)
        if not counts.instances:
            raise ValueError(
                f"There are no word pieces in the text of {', '.join(inputs)}."
            )
    return CreationReport(
        counts=counts,
        is_masked=not options.dynamic_masking,
        output_files=options.output_file,
        max_seq_length=options.max_seq_length,
        has_next_sentence=options.next_sentence,
        num_shards=len(shards),
        num_resumed=journal.num_finished if journal else 0,
        peak_memory_mb=peak_memory_mb,
    )


def _shards(paths, options):
    """Returns the shards; how many there are depends on the text alone."""
    if options.sampler == "release":  # As in 2018, a corpus is drawn from as a whole.
        return data_corpus.shards(paths, options.shard_mb)
    megabytes = sum(files.size(path) for path in paths) / 1e6
    num_shards = _SHARDS_OF_A_SMALL_CORPUS
    while num_shards > 1 and megabytes / num_shards < _FEWEST_MEGABYTES:
        num_shards //= 2
    # A little more, so that no small rest makes a shard of its own.
    target_mb = min(options.shard_mb, _MOST_MEGABYTES, 1.02 * megabytes / num_shards)
    return data_corpus.shards(paths, options.shard_mb, target_mb=target_mb)


def _writer(path, options, vocabulary):
    vocab_file = options.vocab_file
    if not files.is_remote(vocab_file):
        # Whoever reads the records may do so from another folder.
        vocab_file = os.path.abspath(vocab_file)
    metadata = {
        "vocab_file": vocab_file,
        "vocab_size": len(vocabulary),
        "vocab_fingerprint": vocabulary.fingerprint,
        "do_lower_case": options.do_lower_case,
        "max_seq_length": options.max_seq_length,
        "max_predictions_per_seq": options.max_predictions_per_seq,
        "next_sentence": options.next_sentence,
    }
    if options.dynamic_masking:
        del metadata["max_predictions_per_seq"]
    return tfrecord.Writer(path, features.schema_of(options), metadata=metadata)
