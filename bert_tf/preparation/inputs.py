"""Finds the input: files and folders, grouped into units of work."""

import dataclasses
import logging
import os
import re
from collections.abc import Iterator

from bert_tf import files
from bert_tf.preparation.options import PrepareCorpusOptions

_LOG = logging.getLogger(__name__)
# The size of a unit: small enough to keep many machines busy and to lose little when a
# run is killed. It does not depend on the number of workers.
_UNIT_BYTES = 8_000_000
_PACKED_SUFFIX = re.compile(r"\.(?:gz|bz2)$", re.IGNORECASE)
# Files in a folder with other names are skipped.
_FORMATS = {
    "table": re.compile(r"\.(?:csv|tsv|json|jsonl|ndjson|parquet)$", re.IGNORECASE),
    "wikipedia": re.compile(r"\.xml(?:-p\d+p\d+)?$", re.IGNORECASE),
    "prose": re.compile(r"(?:\.(?:txt|text)|^[^.]*)$", re.IGNORECASE),
}
_MARKUP = re.compile(r"\.(?:x?html?|md|rst|tex)$", re.IGNORECASE)
# The list of pages that is published beside a dump.
_INDEX = re.compile(r"-multistream-index\d*\.txt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """A file to read."""

    path: str
    format: str  # "prose", "table" or "wikipedia".
    num_bytes: int  # Size on disk, for progress.


def find(
    options: PrepareCorpusOptions,
) -> tuple[list[tuple[Source, ...]], list[str]]:
    """Returns what each task reads, in order, and the files that are not text.

    Raises:
        OSError: a file does not exist or cannot be read.
        ValueError: there is nothing to read, a file has markup, or `text_field` is
            given and no source has fields.
    """
    default = "prose" if options.format == "auto" else options.format
    sources: list[Source] = []
    skipped: list[str] = []
    for path in files.expand(options.input_file):
        is_folder = files.is_folder(path)
        for name in _files_below(path) if is_folder else [path]:
            file_format = _format(name, options)
            if is_folder and file_format is None:
                skipped.append(name)
                message = "%s: skipped, because its name is not that of a text file."
                _LOG.warning(message, name)
                continue
            if options.format == "auto" and _MARKUP.search(name):
                raise ValueError(
                    f"{name}: expected plain text, but the name is that of a file with "
                    "markup, which would become part of the corpus. Convert it to "
                    "plain text, or pass --format=prose to read it as it is."
                )
            file_format, size = file_format or default, files.size(name)
            sources.append(Source(path=name, format=file_format, num_bytes=size))
    if not sources:
        raise ValueError(
            f"Found no text in {', '.join(options.input_file)}; expected files named "
            ".txt, .json, .jsonl, .csv, .tsv, .parquet or .xml, plain or .gz."
        )
    formats = {source.format for source in sources}
    if not options.is_default("text_field") and "table" not in formats:
        raise ValueError(
            "--text_field names a column, but the input is read as "
            f"{', '.join(sorted(formats))}; omit the flag, or give files of JSON lines "
            "names that end in .jsonl."
        )
    return list(_grouped(sources)), skipped


def _files_below(folder: str) -> Iterator[str]:
    """Yields the files in a folder and its subfolders in order, without hidden ones."""
    for name in files.list_folder(folder):
        path = os.path.join(folder, name)
        if name.startswith("."):
            continue
        if files.is_folder(path):
            yield from _files_below(path)
        else:
            yield path


def _format(path: str, options: PrepareCorpusOptions) -> str | None:
    """Returns the format of a file; None if its name is not that of a text file."""
    name = os.path.basename(path)
    if _INDEX.search(name) or name.endswith(files.SIDE_FILE_SUFFIX):
        return None
    name = _PACKED_SUFFIX.sub("", name)
    for name_format, pattern in _FORMATS.items():
        if pattern.search(name):
            return name_format if options.format == "auto" else options.format
    return None


def _grouped(sources: list[Source]) -> Iterator[tuple[Source, ...]]:
    """Yields groups of several small sources or one large source."""
    group: list[Source] = []
    for source in sources:
        if group and sum(s.num_bytes for s in (*group, source)) > _UNIT_BYTES:
            yield tuple(group)
            group = []
        group.append(source)
    yield tuple(group)
