"""The folder of finished work, from which a killed run resumes."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.preparation.inputs import Unit
from bert_tf.preparation.options import PrepareCorpusOptions

REPORT = "report.json"
_FOLDER = ".prepare_corpus"
_JOB = "job.json"
_CORPUS = re.compile(r"corpus-\d{5}-of-\d{5}\.txt")
# What this tool writes into its folder; the job is removed first.
_WORK = re.compile(r"job\.json|\d{6}\.(?:txt|json)|shard-\d{5}\.txt")
# Options that do not affect the corpus.
_FREE = ("num_workers", "output_dir", "runner", "pipeline_options")


class JobFolder:
    """Keeps the work of a run until its corpus is complete.

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

    def __init__(self, options: PrepareCorpusOptions, units: Sequence[Unit]):
        self._output_dir = options.output_dir
        self.path = os.path.join(options.output_dir, _FOLDER)
        self.fingerprint = _fingerprint(options, units)
        files.make_folders(self.path)
        job = _read(os.path.join(self.path, _JOB))
        report = _read(os.path.join(self._output_dir, REPORT))
        self._old_files = {*_corpus_names(job), *_corpus_names(report)}
        for name in files.list_folder(self._output_dir):
            if _CORPUS.fullmatch(name) and name not in self._old_files:
                raise ValueError(
                    f"--output_dir: {self._output_dir} contains {name}, which is not "
                    f"listed in a {REPORT} there; choose another folder, or remove "
                    "the file."
                )
        if job.get("fingerprint") != self.fingerprint:
            self._remove_work()
            self._save(sorted(self._old_files))

    def shard_path(self, number: int) -> str:
        """Returns where to write a file of the corpus."""
        return os.path.join(self.path, f"shard-{number:05d}.txt")

    def publish(self, names: Sequence[str], report: str) -> None:
        """Replaces an earlier corpus with the files at `shard_path` and a report."""
        self._save(sorted({*self._old_files, *names}))
        for name in [REPORT, *self._old_files]:
            path = os.path.join(self._output_dir, name)
            if files.exists(path):
                files.remove(path)
        for number, name in enumerate(names):
            files.rename(self.shard_path(number), os.path.join(self._output_dir, name))
        path = os.path.join(self._output_dir, REPORT)
        with files.complete_or_absent(path) as file:
            file.write(report)
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
            if name != REPORT and files.final_name(name) == REPORT:
                files.remove(os.path.join(self._output_dir, name))

    def _save(self, names: list[str]) -> None:
        with files.complete_or_absent(os.path.join(self.path, _JOB)) as file:
            json.dump({"fingerprint": self.fingerprint, "output_files": names}, file)


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


def _fingerprint(options: PrepareCorpusOptions, units: Sequence[Unit]) -> str:
    flags = {name: value for name, value in vars(options).items() if name not in _FREE}
    described: list[Any] = [sorted(flags.items()), units]
    sources = [source for unit in units for source in unit.sources]
    for path in (s.path for s in sources if s.format != "tfds"):
        described.append(0 if files.is_remote(path) else os.stat(path).st_mtime_ns)
    return hashlib.blake2b(repr(described).encode(), digest_size=16).hexdigest()
