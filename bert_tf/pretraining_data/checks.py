"""Checks a corpus before pretraining examples are created from it."""

import collections

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.data import text_checks
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module

# Of a longer text, only the sentences of the first documents are tokenized.
_MAX_SAMPLE_CHARACTERS = 8_000_000
_NUM_SPECIAL = 3  # [CLS] and two [SEP].


def run(
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
