"""Finds the input: files, folders and data sets, grouped into units of work."""

import dataclasses
import logging
import os
import re
from collections.abc import Iterator

from bert_tf import files
from bert_tf.data import named_datasets
from bert_tf.preparation.options import PrepareCorpusOptions

_LOG = logging.getLogger(__name__)
# The size of a unit: small enough to keep many machines busy and to lose little when a
# run is killed. It does not depend on the number of workers.
_UNIT_BYTES = 8_000_000
_UNIT_EXAMPLES = 20_000
_PACKED_SUFFIX = re.compile(r"\.(?:gz|bz2|zst)$", re.IGNORECASE)
# Files in a folder with other names are skipped.
_FORMATS = {
    "json": re.compile(r"\.(?:json|jsonl|ndjson)$", re.IGNORECASE),
    "wikipedia": re.compile(r"\.xml(?:-p\d+p\d+)?$", re.IGNORECASE),
    "prose": re.compile(r"(?:\.(?:txt|text)|^[^.]*)$", re.IGNORECASE),
}
# The list of pages that is published beside a dump.
_INDEX = re.compile(r"-multistream-index\d*\.txt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """A file, or a part of a data set."""

    path: str  # The file, or the name of the data set.
    format: str  # "prose", "sentences", "json", "wikipedia" or "tfds".
    num_bytes: int  # Size on disk, for progress.
    examples: tuple[int, int] = (0, 0)  # First example of a data set, and the end.


def find(
    options: PrepareCorpusOptions,
) -> tuple[list[tuple[Source, ...]], list[str]]:
    """Returns what each task reads, in order, and the files that are not text.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        OSError: a file does not exist or cannot be read.
        ValueError: there is nothing to read, the data set does not exist, or
            `text_field` is given and no source has fields.
    """
    default = "prose" if options.format == "auto" else options.format
    sources: list[Source] = []
    skipped: list[str] = []
    for path in files.expand(options.input_file) if options.input_file else []:
        is_folder = files.is_folder(path)
        for name in _files_below(path) if is_folder else [path]:
            file_format = _format(name, options)
            if is_folder and file_format is None:
                skipped.append(name)
                _LOG.warning(
                    "%s: skipped, because its name is not that of a text file.", name
                )
                continue
            size = files.size(name)
            file_format = file_format or default
            sources.append(Source(path=name, format=file_format, num_bytes=size))
    sources += _dataset_sources(options)
    if not sources:
        raise ValueError(
            f"Found no text in {', '.join(options.input_file)}; expected files named "
            ".txt, .json, .jsonl or .xml, compressed or not."
        )
    formats = {source.format for source in sources}
    if not options.is_default("text_field") and formats.isdisjoint({"json", "tfds"}):
        raise ValueError(
            "--text_field names a field of JSON objects or data sets, but the input is "
            f"read as {', '.join(sorted(formats))}; omit the flag. If the files "
            "contain JSON lines, pass --format=json."
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


def _dataset_sources(options: PrepareCorpusOptions) -> Iterator[Source]:
    if options.tfds_name is None:
        return
    data = named_datasets.open_data_set(options.tfds_name, None)
    if options.tfds_split not in data.splits:
        raise ValueError(
            f"{options.tfds_name} has no split {options.tfds_split!r}; the splits are "
            f"{', '.join(data.splits)}."
        )
    split = data.splits[options.tfds_split]
    for start in range(0, split.num_examples, _UNIT_EXAMPLES):
        end = min(start + _UNIT_EXAMPLES, split.num_examples)
        yield Source(
            path=options.tfds_name,
            format="tfds",
            num_bytes=split.num_bytes * (end - start) // split.num_examples,
            examples=(start, end),
        )


def _grouped(sources: list[Source]) -> Iterator[tuple[Source, ...]]:
    """Yields groups of several small sources or one large source."""
    group: list[Source] = []
    for source in sources:
        size = sum(other.num_bytes for other in group)
        if group and size + source.num_bytes > _UNIT_BYTES:
            yield tuple(group)
            group = []
        group.append(source)
    yield tuple(group)
