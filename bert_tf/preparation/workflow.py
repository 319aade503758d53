"""The work of prepare_corpus: raw text to the files of the corpus.

A task writes the text of some sources as a part, and then a JSON file with counts: if
that exists, the part is complete. The parts stay in a folder of finished work until all
are complete, so that a killed run resumes. Then they are moved to the output folder.
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf import locks
from bert_tf.data import parallel
from bert_tf.preparation import documents
from bert_tf.preparation import inputs
from bert_tf.preparation.options import PrepareCorpusOptions

_REPORT = "report.json"
_FOLDER = ".prepare_corpus"
_CORPUS = re.compile(r"corpus-\d{5}-of-\d{5}\.txt")
# Options that do not affect the corpus.
_FREE = ("num_workers", "output_dir", "runner", "pipeline_options")
_LEFT_OUT = {
    "headings": "headings",  # And ornaments.
    "empty_documents": "documents without text",
    "skipped_pages": "pages that are not articles",  # Of Wikipedia, or redirects.
}
_REPORT_SHAPE = {
    **dict.fromkeys(("documents", "sentences", "words"), int),
    "read": dict.fromkeys(("bytes", "paragraphs", *_LEFT_OUT), int),
    "output_files": [str],
    "fingerprint": str,
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
    all is complete: if the run is killed, the same call resumes it. A call whose corpus
    is already there does nothing.

    Returns:
        A summary of the report that is written to `output_dir`. The report and the
        files depend only on the input and the flags.

    Raises:
        ImportError: a library for a format, or Apache Beam, is not installed.
        OSError: a file cannot be read or written, or a worker was killed.
        ValueError: the input is damaged or malformed, or it contains no text; or
            `output_dir` contains another corpus.
    """
    units, skipped = inputs.find(options)
    fingerprint = _fingerprint(options, units)
    with locks.output_folder(options.output_dir):
        report: dict[str, Any] = {}
        # Created again if it is missing or damaged.
        with contextlib.suppress(ValueError, FileNotFoundError):
            path = os.path.join(options.output_dir, _REPORT)
            report = files.read_json(path, shape=_REPORT_SHAPE)
        paths = [
            os.path.join(options.output_dir, name)
            for name in report.get("output_files", ())
        ]
        if report.get("fingerprint") != fingerprint or not all(
            map(files.exists, paths)
        ):
            report = _create(options, units, skipped, fingerprint)
        parallel.remove_work(os.path.join(options.output_dir, _FOLDER))
    names = report["output_files"]
    left_out = {text: report["read"][name] for name, text in _LEFT_OUT.items()}
    left_out["files that are not text"] = len(skipped)
    per_sentence = report["words"] / max(report["sentences"], 1)
    lines = {
        "documents": f"{report['documents']:,}",
        "sentences": f"{report['sentences']:,}",
        "words": f"{report['words']:,}, {per_sentence:.2f} per sentence",
        "left out": ", ".join(f"{n:,} {what}" for what, n in left_out.items() if n),
        "written": names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}",
    }
    return "\n".join(f"{k + ':':<12}{text}" for k, text in lines.items() if text)


def _create(options, units, skipped, fingerprint):
    """Creates a corpus, or completes it; returns the report."""
    work = os.path.join(options.output_dir, _FOLDER)
    files.make_folders(options.output_dir)
    if not parallel.is_work_of(fingerprint, work):
        _check_no_corpus(options.output_dir)
    parallel.start_work(fingerprint, work)
    tasks = [
        Task(
            sources=sources,
            options=options,
            text_path=os.path.join(work, f"{number:06d}.txt"),
            counts_path=os.path.join(work, f"{number:06d}.json"),
        )
        for number, sources in enumerate(units)
    ]
    num_bytes = sum(task.num_bytes for task in tasks)
    parallel.run(extract, tasks, options, stage="read", num_bytes=num_bytes)
    parts: list[str] = []
    counts: collections.Counter[str] = collections.Counter()
    for task in tasks:
        task_counts = files.read_json(task.counts_path)
        counts.update(task_counts)
        if task_counts.get("documents"):
            parts.append(task.text_path)
    if not parts:
        patterns = ", ".join(options.input_file)
        raise ValueError(f"Found no running text in {patterns}.")
    names = [f"corpus-{n:05d}-of-{len(parts):05d}.txt" for n in range(len(parts))]
    for part, name in zip(parts, names, strict=True):
        path = os.path.join(options.output_dir, name)
        if not files.exists(path):  # Otherwise a killed call has moved it.
            files.rename(part, path)
    report = {
        **{name: counts[name] for name in ("documents", "sentences", "words")},
        "read": {name: counts[name] for name in ("bytes", "paragraphs", *_LEFT_OUT)},
        "skipped_files": skipped,
        "output_files": names,
        "fingerprint": fingerprint,
    }
    with files.complete_or_absent(os.path.join(options.output_dir, _REPORT)) as file:
        file.write(json.dumps(report, indent=2) + "\n")
    return report


def extract(task: Task, on_bytes: Callable[[int], None]) -> None:
    """Writes a part, unless it is already complete; see `documents.read`."""
    if files.exists(task.counts_path):
        on_bytes(task.num_bytes)
        return
    counts = collections.Counter(bytes=task.num_bytes)
    with files.complete_or_absent(task.text_path, "wb") as file:
        for source in task.sources:
            for document in documents.read(source, task.options, counts, on_bytes):
                before = counts["paragraphs"]
                for sentences in filter(None, document):
                    text = "\n".join(sentences)
                    file.write((text + "\n").encode())
                    counts["paragraphs"] += 1
                    counts["sentences"] += len(sentences)
                    counts["words"] += len(sentences) + text.count(" ")
                if counts["paragraphs"] == before:
                    counts["empty_documents"] += 1
                else:
                    file.write(b"\n")
                    counts["documents"] += 1
    with files.complete_or_absent(task.counts_path) as file:
        json.dump(counts, file)


def _check_no_corpus(output_dir):
    for name in files.list_folder(output_dir):
        if _CORPUS.fullmatch(name):
            raise ValueError(
                f"--output_dir: {output_dir} contains {name} of another corpus, or of "
                "one whose files are incomplete; choose another folder, or remove it."
            )


def _fingerprint(
    options: PrepareCorpusOptions, units: Sequence[tuple[inputs.Source, ...]]
) -> str:
    flags = {name: value for name, value in vars(options).items() if name not in _FREE}
    described: list[Any] = [sorted(flags.items()), units]
    for path in (source.path for unit in units for source in unit):
        described.append(0 if files.is_remote(path) else os.stat(path).st_mtime_ns)
    return hashlib.blake2b(repr(described).encode(), digest_size=16).hexdigest()
