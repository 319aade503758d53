"""The work of prepare_corpus: reads units, removes duplicates, writes files."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from collections.abc import Iterator

from bert_tf import files
from bert_tf import locks
from bert_tf.data.parallel import execution
from bert_tf.preparation import extraction
from bert_tf.preparation import inputs
from bert_tf.preparation.job_folder import JobFolder
from bert_tf.preparation.options import PrepareCorpusOptions

_MEGABYTE = 1_000_000


@dataclasses.dataclass
class _Written:
    documents: int = 0
    sentences: int = 0
    words: int = 0
    duplicate_paragraphs: int = 0  # Left out.


@dataclasses.dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """What was read and written. It depends only on the input and the flags."""

    # Written.
    documents: int
    sentences: int
    words: int  # Separated by spaces.
    read: dict[str, int]  # The fields of `ReadCounts`.
    # Left out.
    duplicate_paragraphs: int
    skipped_files: tuple[str, ...]  # Files whose names are not those of text files.
    output_files: tuple[str, ...]  # Names in the output folder.
    fingerprint: str  # Hash of the input's names and sizes, and of the flags.

    def __str__(self) -> str:
        left_out = {
            "headings": self.read["headings"],
            "duplicate paragraphs": self.duplicate_paragraphs,
            "documents without text": self.read["empty_documents"],
            "pages that are not articles": self.read["skipped_pages"],
            "bytes that are not UTF-8": self.read["invalid_bytes"],
            "files that are not text": len(self.skipped_files),
        }
        names = self.output_files
        lines = {
            "documents": f"{self.documents:,}",
            "sentences": f"{self.sentences:,}",
            "words": f"{self.words:,}, {self.words / self.sentences:.2f} per sentence",
            "left out": ", ".join(f"{n:,} {what}" for what, n in left_out.items() if n),
            "written": names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}",
        }
        return "\n".join(f"{k + ':':<12}{text}" for k, text in lines.items() if text)


def prepare_corpus(
    options: PrepareCorpusOptions,
) -> CorpusReport:
    """Writes raw text as `corpus-*.txt`, with one sentence per line.

    A blank line follows each document. Finished parts are kept in `output_dir` until
    all is complete: if the run is killed, the same call resumes it. Until then, the
    disk contains a second copy of the text.

    Args:
        options: what to read, leave out and write.

    Returns:
        The report, which is also written to `output_dir`. The report and the files
        depend only on the input and the flags.

    Raises:
        ImportError: a library for a format, or Apache Beam, is not installed.
        OSError: a file cannot be read or written, or a worker was killed.
        ValueError: the input is damaged or malformed, or it contains no text.
    """
    units, skipped = inputs.find(options)
    with locks.output_folder(options.output_dir):
        job = JobFolder(options, units)
        tasks = [
            extraction.Task(unit=unit, options=options, folder=job.path)
            for unit in units
        ]
        execution.run(
            extraction.extract,
            tasks,
            options,
            stage="read",
            num_bytes=sum(unit.num_bytes for unit in units),
        )
        return _write(job, tasks, options, skipped)


def _write(
    job: JobFolder,
    tasks: list[extraction.Task],
    options: PrepareCorpusOptions,
    skipped: list[str],
) -> CorpusReport:
    """Copies the parts into the files of the corpus."""
    read = inputs.ReadCounts()
    for task in tasks:
        read.add(task.counts())
    written = _Written()
    num_files = 0
    documents = _documents(tasks, options.deduplicate_paragraphs, written)
    for data in _shards(documents, options.shard_mb * _MEGABYTE):
        with files.complete_or_absent(job.shard_path(num_files), "wb") as file:
            for document in data:
                file.write(document)
        num_files += 1
    if not num_files:
        sources = [*options.input_file, *filter(None, [options.tfds_name])]
        raise ValueError(f"Found no running text in {', '.join(sources)}.")
    names = [f"corpus-{n:05d}-of-{num_files:05d}.txt" for n in range(num_files)]
    report = CorpusReport(
        **dataclasses.asdict(written),
        read=dataclasses.asdict(read),
        skipped_files=tuple(skipped),
        output_files=tuple(names),
        fingerprint=job.fingerprint,
    )
    job.publish(names, json.dumps(dataclasses.asdict(report), indent=2) + "\n")
    return report


def _documents(
    tasks: Iterable[extraction.Task], deduplicate: bool, written: _Written
) -> Iterator[bytes]:
    """Yields documents without paragraphs that occurred before, and counts them.

    Paragraphs are compared by 64 bits of a hash. Among 10^9 different paragraphs, the
    probability of a single collision is 3 %.
    """
    hashes: set[bytes] = set()
    for task in tasks:
        document: list[bytes] = []
        with files.open_file(task.text_path, "rb") as file:
            for line in file:
                if line != b"\n":
                    if deduplicate:
                        digest = hashlib.blake2b(line, digest_size=8).digest()
                        if digest in hashes:
                            written.duplicate_paragraphs += 1
                            continue
                        hashes.add(digest)
                    document.append(line)
                elif document:
                    data = b"".join(document).replace(b"\t", b"\n")
                    num_sentences = data.count(b"\n")
                    written.documents += 1
                    written.sentences += num_sentences
                    written.words += num_sentences + data.count(b" ")
                    yield data + b"\n"
                    document = []


def _shards(documents: Iterator[bytes], max_bytes: float) -> Iterator[Iterable[bytes]]:
    """Yields the documents of each file. Read them before the next file."""
    following = next(documents, None)

    def shard():
        nonlocal following
        size = 0
        while following is not None and (
            not size or size + len(following) <= max_bytes
        ):
            yield following
            size += len(following)
            following = next(documents, None)

    while following is not None:
        yield shard()
