"""create_pretraining_data on one page: shard the text, sample it, write, report."""

import collections
import contextlib
import dataclasses
import logging
import os

from bert_tf import files
from bert_tf import locks
from bert_tf import options as options_module
from bert_tf.data import corpus as data_corpus
from bert_tf.data import record_checks
from bert_tf.data import record_index
from bert_tf.data import text_checks
from bert_tf.data import tfrecord
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import shard_tasks
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)

# For --check: of a longer text, only the first documents are tokenized.
_MAX_SAMPLE_CHARACTERS = 8_000_000
_NUM_SPECIAL = 3  # [CLS] and two [SEP].


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreationReport:
    """What was read and written."""

    options: pretraining_data_options.CreatePretrainingDataOptions
    counts: counts_module.Counts
    num_shards: int
    num_resumed: int  # Shards that an earlier run had finished.

    @property
    def mean_fill(self) -> float:
        """Share of the positions that is not padding."""
        return self.counts.filled / (self.counts.rows * self.options.max_seq_length)

    def __str__(self) -> str:
        counts, options = self.counts, self.options
        lines = {
            "documents": f"{counts.documents:,}",
            "sentences": f"{counts.sentences:,}",
            "word pieces": f"{counts.pieces:,}",
            "[UNK]": f"{counts.unknown_share:.3%} of the pieces",
            "shards": f"{self.num_shards:,}",
            "sequences": f"{counts.instances:,}",
            "mean fill": f"{self.mean_fill:.1%} of {options.max_seq_length} positions",
            "masked": f"{counts.masked / counts.filled:.2%} of the filled positions",
        }
        if counts.rows < counts.instances:
            positions = counts.instances * options.max_seq_length
            lines["rows"] = (
                f"{counts.rows:,}, {1 - self.mean_fill:.1%} padding; "
                f"{1 - counts.filled / positions:.1%} with one sequence per row"
            )
        if self.num_resumed:
            lines["shards"] += f", {self.num_resumed:,} of them from an earlier run"
        if options.next_sentence:
            share = counts.random_next / counts.instances
            lines["random next"] = f"{share:.1%} of the sequences"
        lines["written"] = ", ".join(options.output_file)
        return "\n".join(f"{name + ':':<14}{value}" for name, value in lines.items())


def run(options: pretraining_data_options.CreatePretrainingDataOptions) -> str:
    """Creates the data, or only checks the text (--check); returns a report.

    Raises:
        OSError, ValueError: see `create_data`.
    """
    if options.check:
        return check_text(options).report()
    return str(create_data(options))


def create_data(
    options: pretraining_data_options.CreatePretrainingDataOptions,
) -> CreationReport:
    """Writes TFRecord files of masked sequences sampled from text files.

    With fewer shards than output files, sequences go to the files in turn, as in the
    release. Otherwise shard i goes to file i mod F.

    Args:
        options: what to read, create and write.

    Returns:
        What was read and written. It depends only on the input, the flags and the seed.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the text is empty, is not UTF-8, has too many [UNK], or has one
            document although sentence pairs need two; the vocabulary is invalid; or an
            output file is also an input.
    """
    inputs = files.expand(options.input_file)
    options_module.check_not_overwritten(
        outputs={"output_file": options.output_file},
        inputs={"input_file": inputs, "vocab_file": [options.vocab_file]},
    )
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    vocabulary.check_has_mask()
    _warn_about_predictions(options)
    warning = full.pretraining_casing_warning(
        vocabulary, do_lower_case=options.do_lower_case
    )
    if warning is not None:
        logger.warning("%s", warning)
    # The release samples a corpus as a whole.
    is_whole = options.sampler == "release"
    cut = data_corpus.shards if is_whole else data_corpus.balanced_shards
    shards = cut(inputs, options.shard_mb)
    if not shards:
        raise ValueError(f"Found no text in {', '.join(inputs)}.")
    with contextlib.ExitStack() as stack:
        for path in options.output_file:
            stack.enter_context(locks.output_file(path))
            files.remove_leftovers(*os.path.split(record_index.side_path(path)))
        digest = shard_tasks.fingerprint(options, vocabulary, inputs, shards)
        folder = stack.enter_context(
            shard_tasks.folder_beside(options.output_file[0], digest)
        )
        num_resumed = shard_tasks.num_finished(folder)
        writers = [
            stack.enter_context(_writer(path, options, vocabulary))
            for path in options.output_file
        ]
        counts = shard_tasks.write(shards, writers, options, vocabulary, folder)
        if not counts.instances:
            raise ValueError(
                f"Found no word pieces in the text of {', '.join(inputs)}."
            )
        for writer in writers:
            writer.metadata["unknown_share"] = round(counts.unknown_share, 6)
    record_checks.warn_about_unknown(counts.unknown_share, options.output_file[0])
    return CreationReport(
        options=options,
        counts=counts,
        num_shards=len(shards),
        num_resumed=num_resumed,
    )


def _warn_about_predictions(options):
    """Warns if full examples get clearly fewer masks than `masked_lm_prob` asks for."""
    limit = options.max_predictions_per_seq
    wanted = pretraining_data_options.num_wanted(
        options.max_seq_length, options.masked_lm_prob
    )
    # Published recipes round down, for example to 76 of 512 * 0.15.
    if limit < 0.95 * wanted:
        logger.warning(
            "--max_predictions_per_seq=%d limits a full example to %d masks; "
            "--masked_lm_prob=%g would mask %d. Pass --max_predictions_per_seq=%d here "
            "and to bert_tf pretrain, or a smaller --masked_lm_prob.",
            limit,
            limit,
            options.masked_lm_prob,
            wanted,
            wanted,
        )


def _writer(path, options, vocabulary):
    vocab_file = options.vocab_file
    if not files.is_remote(vocab_file):
        # A reader of the records may run in another folder.
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
    return tfrecord.Writer(path, shard_tasks.schema_of(options), metadata=metadata)


def check_text(
    options: pretraining_data_options.CreatePretrainingDataOptions,
) -> text_checks.Findings:
    """Checks the text files that the options name; returns the findings.

    Raises:
        OSError, ValueError: the vocabulary cannot be read.
    """
    findings = text_checks.Findings()
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    counts: collections.Counter[str] = collections.Counter()
    sample: list[str] = []
    try:
        for document in data_corpus.read_documents(files.expand(options.input_file)):
            counts["documents"] += 1
            counts["sentences"] += len(document)
            counts["characters"] += sum(map(len, document))
            if counts["characters"] <= _MAX_SAMPLE_CHARACTERS or not sample:
                sample += document
    except (OSError, ValueError) as error:
        findings.error("reading", error)
        return findings
    if not sample:
        findings.error("documents", "the files contain no text")
        return findings
    described = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    findings.passed("documents", described)
    if counts["documents"] < 2 and options.next_sentence:
        findings.error(
            "documents", "next-sentence examples need two, separated by a blank line"
        )
    try:
        vocabulary.check_has_mask()
    except ValueError as error:
        findings.error("vocabulary", error)
    text_checks.check_casing(findings, vocabulary, do_lower_case=options.do_lower_case)
    # Imports TensorFlow, which creating data does not need.
    from bert_tf.tokenization import in_graph

    tokenizer = in_graph.InGraphTokenizer(
        vocabulary, do_lower_case=options.do_lower_case
    )
    lengths, unknown = text_checks.count_pieces(tokenizer, sample)
    part = "text"
    if len(sample) < counts["sentences"]:
        part = f"first {len(sample):,} sentences"
    text_checks.check_lengths(
        findings,
        f"{part}, sentences",
        lengths,
        room=options.max_seq_length - _NUM_SPECIAL,
        limit=f"--max_seq_length={options.max_seq_length}",
    )
    text_checks.check_unknown(findings, part, lengths=lengths, num_unknown=unknown)
    return findings
