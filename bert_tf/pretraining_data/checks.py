"""Checks a corpus before pretraining examples are created from it."""

import dataclasses

from bert_tf import files
from bert_tf.data import corpus as data_corpus
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

# Of a longer text, only every 2nd, 4th, ... sentence is checked.
MAX_SAMPLE_CHARACTERS = 8_000_000
# Longer lines are probably paragraphs, which make useless next-sentence examples.
_LONG_SENTENCE = 1000
_NUM_SPECIAL = 3  # [CLS] and two [SEP].


@dataclasses.dataclass(kw_only=True)
class _Text:
    """Counts that are collected while the corpus is read."""

    num_documents: int = 0
    num_sentences: int = 0
    num_characters: int = 0
    num_single: int = 0  # Documents of one sentence.
    num_long: int = 0  # Lines that are too long to be a sentence.
    num_repeated: int = 0  # Documents that occurred before.
    sample: list[str] = dataclasses.field(default_factory=list)
    sampled_every: int = 1
    sampled_characters: int = 0

    def take(self, document, seen):
        """Counts one more document; `seen` contains the hashes of the earlier ones."""
        self.num_documents += 1
        self.num_single += len(document) == 1
        fingerprint = hash(tuple(document))
        self.num_repeated += fingerprint in seen
        seen.add(fingerprint)
        for sentence in document:
            if self.num_sentences % self.sampled_every == 0:
                self.sample.append(sentence)
                self.sampled_characters += len(sentence)
            self.num_sentences += 1
            self.num_characters += len(sentence)
            self.num_long += len(sentence) > _LONG_SENTENCE
        if self.sampled_characters > MAX_SAMPLE_CHARACTERS:
            self.sample = self.sample[::2]
            self.sampled_every *= 2
            self.sampled_characters = sum(map(len, self.sample))


def run(
    options: pretraining_data_options.CreatePretrainingDataOptions,
) -> findings_module.Findings:
    """Checks the text files; returns the findings.

    Args:
        options: how examples would be created.

    Raises:
        OSError, ValueError: the vocabulary cannot be read.
    """
    findings = findings_module.Findings()
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    _check(options, vocabulary, findings)
    return findings


def _check(options, vocabulary, findings):
    text = _Text()
    seen: set[int] = set()
    try:
        for document in data_corpus.read_documents(files.expand(options.input_file)):
            text.take(document, seen)
    except (OSError, ValueError) as error:
        findings.failure("reading", error)
        return
    if not text.num_sentences:
        findings.error("documents", "the files contain no text")
        return
    _check_documents(options, findings, text)
    if not options.dynamic_masking:
        try:
            vocabulary.check_has_mask()
        except ValueError as error:
            findings.failure("vocabulary", error)
    text_checks.check_casing(
        findings, text.sample, vocabulary, do_lower_case=options.do_lower_case
    )
    tokenizer = in_graph.InGraphTokenizer(
        vocabulary, do_lower_case=options.do_lower_case
    )
    lengths, unknown = text_checks.count_pieces(tokenizer, text.sample)
    part = "text"
    if text.sampled_every > 1:
        part = f"one sentence in {text.sampled_every}"
    text_checks.check_lengths(
        findings,
        f"{part}, sentences",
        lengths,
        room=options.max_seq_length - _NUM_SPECIAL,
        limit=f"--max_seq_length={options.max_seq_length}",
    )
    text_checks.check_unknown(findings, part, lengths=lengths, num_unknown=unknown)
    num_pieces = int(lengths.sum()) * text.sampled_every
    num_rows = options.dupe_factor * num_pieces // (options.max_seq_length)
    findings.note(
        "estimate",
        f"about {num_pieces:,} pieces; --dupe_factor={options.dupe_factor} creates "
        f"about {num_rows:,} sequences of --max_seq_length={options.max_seq_length}, "
        "or a third more with next-sentence examples",
    )


def _check_documents(options, findings, text):
    counts = (
        f"{text.num_documents:,} documents, {text.num_sentences:,} sentences, "
        f"{text.num_characters:,} characters"
    )
    if text.num_documents < 2 and options.next_sentence:
        findings.error(
            "documents",
            f"{counts}; next-sentence examples need two, separated by a blank line",
        )
    else:
        findings.passed("documents", counts)
    single = text.num_single / text.num_documents
    findings.judge(
        "documents",
        f"{single:.1%} have only one sentence, which no other sentence follows",
        is_good=single <= 0.5 or not options.next_sentence,
    )
    repeated = text.num_repeated / text.num_documents
    findings.judge(
        "duplicates",
        f"{text.num_repeated:,} documents occurred before",
        is_good=repeated <= 0.01,
    )
    long = text.num_long / text.num_sentences
    findings.judge(
        "sentences",
        f"{long:.1%} of the lines have more than {_LONG_SENTENCE} characters; expected "
        "one sentence per line",
        is_good=long <= 0.01,
    )
