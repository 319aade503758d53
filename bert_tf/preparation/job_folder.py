"""The folder of finished work, from which a killed run resumes."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Sequence

from bert_tf import files
from bert_tf.preparation import input_units
from bert_tf.preparation import options as preparation_options

REPORT = "report.json"
_FOLDER = ".prepare_corpus"
_JOB = "job.json"
_SHARD = re.compile(r"corpus-\d{5}-of-\d{5}\.txt")
# What this tool writes into the folder: the job, parts, masks and statistics.
_OWN = re.compile(
    r"job\.json|shard-\d{5}\.npz"
    r"|\d{6}\.(?:txt|paragraphs|documents|signatures|json|kept)"
)
# Options that do not affect the corpus.
_FREE = ("num_workers", "output_dir", "runner", "pipeline_options")
_VERSION = 2  # Of the files in the folder. Work of other versions is discarded.


class JobFolder:
    """Keeps the parts of a run until its corpus is complete.

    Args:
        options: what to write, and where.
        units: what is read.

    Raises:
        OSError: the folder cannot be created.
        ValueError: `output_dir` contains a corpus that this tool did not write.
    """

    def __init__(
        self,
        options: preparation_options.PrepareCorpusOptions,
        units: Sequence[input_units.Unit],
    ):
        self.output_dir = options.output_dir
        self.path = os.path.join(options.output_dir, _FOLDER)
        self.fingerprint = _fingerprint(options, units)
        self._check_not_foreign()
        if self._job()["fingerprint"] != self.fingerprint:
            self.remove()
            self._save({"fingerprint": self.fingerprint, "files": self._written()})

    def begin_writing(self, names: list[str]) -> None:
        """Removes the corpus of an earlier run. Call it before files are written.

        Args:
            names: the names of the files that will be written.
        """
        job = self._job()
        if job["writes"] == names:
            return
        for name in [REPORT, *sorted({*job["files"], *job["writes"]})]:
            path = os.path.join(self.output_dir, name)
            if files.exists(path):
                files.remove(path)
        self._save({**job, "writes": names})

    def remove(self) -> None:
        """Removes the folder with the files that this tool wrote into it."""
        if not files.exists(self.path):
            return
        self._remove_unfinished()
        # The job file is removed first: the next run discards a folder without it.
        names = files.list_folder(self.path)
        for name in sorted(names, key=lambda name: name != _JOB):
            if _OWN.fullmatch(files.final_name(name)):
                files.remove(os.path.join(self.path, name))
        if not files.is_remote(self.path):
            with contextlib.suppress(OSError):
                os.rmdir(self.path)

    def _remove_unfinished(self):
        """Removes partial files that a killed process left beside the corpus."""
        for name in files.list_folder(self.output_dir):
            final_name = files.final_name(name)
            is_own = final_name == REPORT or _SHARD.fullmatch(final_name)
            if is_own and name != final_name:
                files.remove(os.path.join(self.output_dir, name))

    def _check_not_foreign(self):
        if not files.exists(self.output_dir):
            return
        known = self._written()
        for name in files.list_folder(self.output_dir):
            if _SHARD.fullmatch(name) and name not in known:
                raise ValueError(
                    f"--output_dir: {self.output_dir} contains {name}, which is not "
                    f"listed in a {REPORT} there; choose another folder, or remove "
                    "the file."
                )

    def _written(self):
        """Returns the names of the files that the last run here wrote or began."""
        job = self._job()
        report = _read(os.path.join(self.output_dir, REPORT))
        listed = _corpus_names(report.get("output_files"))
        return sorted({*job["files"], *job["writes"], *listed})

    def _job(self):
        job = _read(os.path.join(self.path, _JOB))
        return {
            "fingerprint": job.get("fingerprint"),
            "files": _corpus_names(job.get("files")),
            "writes": _corpus_names(job.get("writes")),
        }

    def _save(self, job):
        files.make_folders(self.path)
        with files.complete_or_absent(os.path.join(self.path, _JOB)) as file:
            json.dump(job, file)


def _read(path):
    """Returns the object in a JSON file, empty if it is missing or damaged."""
    with contextlib.suppress(ValueError, FileNotFoundError):
        return files.read_json(path)
    return {}


def _corpus_names(names):
    """Returns the names of corpus files in a list that was read from a file.

    Anything else in the list is dropped, because these files are going to be removed.
    """
    names = names if isinstance(names, list) else []
    return [n for n in names if isinstance(n, str) and _SHARD.fullmatch(n)]


def _fingerprint(options, units):
    """Returns a hash of flags and input: names, sizes and modification times."""
    flags = {name: value for name, value in vars(options).items() if name not in _FREE}
    described = [_VERSION, sorted(flags.items()), units]
    paths = sorted(
        {s.path for unit in units for s in unit.sources if s.format != "tfds"}
    )
    for path in paths:
        time = 0 if files.is_remote(path) else os.stat(path).st_mtime_ns
        described.append((path, files.size(path), time))
    return hashlib.blake2b(repr(described).encode(), digest_size=16).hexdigest()
