"""The work of prepare_corpus: raw text to parts, parts to the files of the corpus.

A task writes the text of some sources as a part, and then a JSON file with counts: if
that exists, the part is complete. All parts stay in a folder of finished work until the
corpus is complete, so that a killed run resumes.
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf import locks
from bert_tf.data.parallel import execution
from bert_tf.preparation import documents
from bert_tf.preparation import inputs
from bert_tf.preparation.options import PrepareCorpusOptions

_MEGABYTE = 1_000_000
_REPORT = "report.json"
_FOLDER = ".prepare_corpus"
_JOB = "job.json"
_CORPUS = re.compile(r"corpus-\d{5}-of-\d{5}\.txt")
# What this tool writes into its folder; the job is removed first.
_WORK = re.compile(r"job\.json|\d{6}\.(?:txt|json)|shard-\d{5}\.txt")
# Options that do not affect the corpus.
_FREE = ("num_workers", "output_dir", "runner", "pipeline_options")
_LEFT_OUT = {
    "headings": "headings",  # And ornaments.
    "empty_documents": "documents without text",
    "skipped_pages": "pages that are not articles",  # Of Wikipedia, or redirects.
    "invalid_bytes": "bytes that are not UTF-8",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """Some sources to read, and the files to write."""

    sources: tuple[inputs.Source, ...]
    options: PrepareCorpusOptions
    text_path: str
    counts_path: str

    @property
    def num_bytes(self) -> int:
        """Size on disk of all sources."""
        return sum(source.num_bytes for source in self.sources)


def prepare_corpus(options: PrepareCorpusOptions) -> str:
    """Writes raw text as `corpus-*.txt`, with one sentence per line.

    A blank line follows each document. Finished parts are kept in `output_dir` until
    all is complete: if the run is killed, the same call resumes it. Until then, the
    disk contains a second copy of the text.

    Args:
        options: what to read and write.

    Returns:
        A summary of the report that is written to `output_dir`. The report and the
        files depend only on the input and the flags.

    Raises:
        ImportError: a library for a format, or Apache Beam, is not installed.
        OSError: a file cannot be read or written, or a worker was killed.
        ValueError: the input is damaged or malformed, or it contains no text.
    """
    units, skipped = inputs.find(options)
    with locks.output_folder(options.output_dir):
        job = JobFolder(options, units)
        tasks = [
            Task(
                sources=sources,
                options=options,
                text_path=os.path.join(job.path, f"{number:06d}.txt"),
                counts_path=os.path.join(job.path, f"{number:06d}.json"),
            )
            for number, sources in enumerate(units)
        ]
        num_bytes = sum(task.num_bytes for task in tasks)
        execution.run(extract, tasks, options, stage="read", num_bytes=num_bytes)
        num_files = 0
        for shard in _shards(_documents(tasks), options.shard_mb * _MEGABYTE):
            with files.complete_or_absent(job.shard_path(num_files), "wb") as file:
                for document in shard:
                    file.write(document)
            num_files += 1
        if not num_files:
            patterns = ", ".join(options.input_file)
            raise ValueError(f"Found no running text in {patterns}.")
        counts = sum(map(_counts, tasks), collections.Counter())
        names = [f"corpus-{n:05d}-of-{num_files:05d}.txt" for n in range(num_files)]
        read = {name: counts[name] for name in ("bytes", "paragraphs", *_LEFT_OUT)}
        report = {
            **{name: counts[name] for name in ("documents", "sentences", "words")},
            "read": read,
            "skipped_files": skipped,
            "output_files": names,
            "fingerprint": job.fingerprint,
        }
        job.publish(names, report)
    left_out = {text: read[name] for name, text in _LEFT_OUT.items()}
    left_out["files that are not text"] = len(skipped)
    per_sentence = counts["words"] / counts["sentences"]
    lines = {
        "documents": f"{counts['documents']:,}",
        "sentences": f"{counts['sentences']:,}",
        "words": f"{counts['words']:,}, {per_sentence:.2f} per sentence",
        "left out": ", ".join(f"{n:,} {what}" for what, n in left_out.items() if n),
        "written": names[0] if num_files == 1 else f"{names[0]} to {names[-1]}",
    }
    return "\n".join(f"{k + ':':<12}{text}" for k, text in lines.items() if text)


def extract(task: Task, on_bytes: Callable[[int], None]) -> None:
    """Writes a part, unless it is already complete.

    Args:
        task: what to read, and where to write it.
        on_bytes: called with the number of bytes that were read since the last call.

    Raises:
        ImportError, OSError, ValueError: see `documents.read`.
    """
    if files.exists(task.counts_path):
        on_bytes(task.num_bytes)
        return
    counts = collections.Counter(bytes=task.num_bytes)
    with files.complete_or_absent(task.text_path, "wb") as file:
        for source in task.sources:
            for document in documents.read(source, task.options, counts, on_bytes):
                num_paragraphs = 0
                for sentences in filter(None, document):
                    text = "\n".join(sentences)
                    file.write((text + "\n").encode())
                    num_paragraphs += 1
                    counts["sentences"] += len(sentences)
                    counts["words"] += len(sentences) + text.count(" ")
                if num_paragraphs:
                    file.write(b"\n")
                counts["documents"] += num_paragraphs > 0
                counts["paragraphs"] += num_paragraphs
                counts["empty_documents"] += num_paragraphs == 0
    with files.complete_or_absent(task.counts_path) as file:
        json.dump(counts, file)


def _counts(task: Task) -> collections.Counter[str]:
    return collections.Counter(files.read_json(task.counts_path))


def _documents(tasks: Iterable[Task]) -> Iterator[bytes]:
    for task in tasks:
        document: list[bytes] = []
        with files.open_file(task.text_path, "rb") as file:
            for line in file:
                document.append(line)
                if line == b"\n":
                    yield b"".join(document)
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


class JobFolder:
    """The folder of finished work, from which a killed run resumes.

    Args:
        options: what to write, and where.
        units: what is read.

    Attributes:
        path: the folder.
        fingerprint: hash of the flags and of the input's names, sizes and times.

    Raises:
        OSError: the folder cannot be created.
        ValueError: `output_dir` contains a corpus that this tool did not write.
    """

    def __init__(
        self, options: PrepareCorpusOptions, units: Sequence[tuple[inputs.Source, ...]]
    ):
        self._output_dir = options.output_dir
        self.path = os.path.join(options.output_dir, _FOLDER)
        self.fingerprint = _fingerprint(options, units)
        files.make_folders(self.path)
        job = _read(os.path.join(self.path, _JOB))
        report = _read(os.path.join(self._output_dir, _REPORT))
        self._old_files = {*_corpus_names(job), *_corpus_names(report)}
        for name in files.list_folder(self._output_dir):
            if _CORPUS.fullmatch(name) and name not in self._old_files:
                raise ValueError(
                    f"--output_dir: {self._output_dir} contains {name}, which is not "
                    f"listed in a {_REPORT} there; choose another folder, or remove "
                    "the file."
                )
        if job.get("fingerprint") != self.fingerprint:
            self._remove_work()
            self._save(self._old_files)

    def shard_path(self, number: int) -> str:
        """Returns where to write a file of the corpus."""
        return os.path.join(self.path, f"shard-{number:05d}.txt")

    def publish(self, names: Sequence[str], report: dict[str, Any]) -> None:
        """Replaces an earlier corpus with the files at `shard_path` and a report."""
        self._save({*self._old_files, *names})
        for name in [_REPORT, *self._old_files]:
            path = os.path.join(self._output_dir, name)
            if files.exists(path):
                files.remove(path)
        for number, name in enumerate(names):
            files.rename(self.shard_path(number), os.path.join(self._output_dir, name))
        path = os.path.join(self._output_dir, _REPORT)
        with files.complete_or_absent(path) as file:
            file.write(json.dumps(report, indent=2) + "\n")
        self._remove_work()
        if not files.is_remote(self.path):
            with contextlib.suppress(OSError):
                os.rmdir(self.path)

    def _remove_work(self) -> None:
        names = files.list_folder(self.path)
        for name in sorted(names, key=lambda name: name != _JOB):
            if _WORK.fullmatch(files.final_name(name)):
                files.remove(os.path.join(self.path, name))
        for name in files.list_folder(self._output_dir):
            if name != _REPORT and files.final_name(name) == _REPORT:
                files.remove(os.path.join(self._output_dir, name))

    def _save(self, names: set[str]) -> None:
        job = {"fingerprint": self.fingerprint, "output_files": sorted(names)}
        with files.complete_or_absent(os.path.join(self.path, _JOB)) as file:
            json.dump(job, file)


def _read(path: str) -> dict[str, Any]:
    """Returns the object in a JSON file, empty if it is missing or damaged."""
    with contextlib.suppress(ValueError, FileNotFoundError):
        return files.read_json(path)
    return {}


def _corpus_names(saved: dict[str, Any]) -> list[str]:
    """Returns the names of corpus files that a file lists.

    Anything else in the list is dropped, because these files are going to be removed.
    """
    names = saved.get("output_files")
    names = names if isinstance(names, list) else []
    return [n for n in names if isinstance(n, str) and _CORPUS.fullmatch(n)]


def _fingerprint(
    options: PrepareCorpusOptions, units: Sequence[tuple[inputs.Source, ...]]
) -> str:
    flags = {name: value for name, value in vars(options).items() if name not in _FREE}
    described: list[Any] = [sorted(flags.items()), units]
    for path in (source.path for unit in units for source in unit):
        described.append(0 if files.is_remote(path) else os.stat(path).st_mtime_ns)
    return hashlib.blake2b(repr(described).encode(), digest_size=16).hexdigest()
