"""Copies of remote files on a local disk, for --cache_dir.

A copy that is complete and as old as its original is used again, also by another run.
"""

import concurrent.futures
import hashlib
import logging
import os

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.data import record_index

logger = logging.getLogger(__name__)

_DIGITS = 12  # Of the checksum of a remote folder's name.
_STAGE = "copy"


def local_copies(
    paths: list[str],
    cache_dir: str | None,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> list[str]:
    """Returns the paths of files, with local copies in place of remote files.

    The side file of a TFRecord file is copied too.

    Args:
        paths: the files.
        cache_dir: local folder for the copies; None: `paths` are returned.
        progress: see `bert_tf.progress`.

    Raises:
        OSError: a file cannot be read or written, or the disk is too small.
        ValueError: `cache_dir` is not local.
    """
    remote = [path for path in paths if files.is_remote(path)]
    if cache_dir is None or not remote:
        return paths
    if files.is_remote(cache_dir):
        raise ValueError(f"--cache_dir={cache_dir}: expected a local folder.")
    copied = {path: _copied_path(path, cache_dir) for path in remote}
    sides = [path + files.SIDE_FILE_SUFFIX for path in remote]
    has_side = files.map_paths(files.exists, sides)
    wanted = remote + [s for s, found in zip(sides, has_side, strict=True) if found]
    facts = dict(zip(wanted, files.map_paths(files.size_and_time, wanted), strict=True))
    missing = [path for path in wanted if not _is_copied(path, cache_dir, facts[path])]
    for path, found in zip(remote, has_side, strict=True):
        if not found:  # A side file of an earlier version would describe other records.
            record_index.remove(copied[path])
    with concurrent.futures.ThreadPoolExecutor(files.REQUESTS_AT_ONCE) as threads:
        copies = threads.map(lambda path: _copy(path, cache_dir, facts[path]), missing)
        for number, _ in enumerate(copies, start=1):
            progress(_STAGE, number, len(missing), unit="files")
    logger.info(
        "Remote examples are read from their copies in %s (%d of %d files copied now).",
        cache_dir,
        len(missing),
        len(wanted),
    )
    return [copied.get(path, path) for path in paths]


def _copied_path(path, cache_dir):
    """Returns where the copy of a file is: its name, in a folder for its folder."""
    folder, name = path.rpartition("/")[::2]
    digest = hashlib.sha256(folder.encode("utf-8")).hexdigest()[:_DIGITS]
    return os.path.join(cache_dir, digest, name)


def _is_copied(path, cache_dir, facts):
    copy = _copied_path(path, cache_dir)
    return os.path.isfile(copy) and files.size_and_time(copy) == facts


def _copy(path, cache_dir, facts):
    copy = _copied_path(path, cache_dir)
    # Another process on this machine may want the same copy.
    with locks.output_file(copy, flag="cache_dir", waits=True):
        if _is_copied(path, cache_dir, facts):
            return
        with files.complete_or_absent_path(copy) as temporary:
            files.copy(path, temporary)
            # A mixture of both files could have the right size.
            if files.size_and_time(path) != facts:
                raise OSError(f"{path} changed while it was copied; start again.")
        # The time of the original shows later whether the copy is up to date.
        os.utime(copy, (facts[1], facts[1]))
