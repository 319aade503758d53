"""Finds the input: files, folders and data sets, grouped into units of input."""

import dataclasses
import logging
import os
import re
from collections.abc import Iterator

from bert_tf import files
from bert_tf.preparation import archives
from bert_tf.preparation import datasets
from bert_tf.preparation import input_units
from bert_tf.preparation import options as preparation_options

_LOG = logging.getLogger(__name__)
# The size of a unit of input: small enough to keep many machines busy and to lose
# little when a run is killed. It does not depend on the number of workers.
_UNIT_BYTES = 8_000_000
_UNIT_EXAMPLES = 20_000
_UNPACKED = 4  # Assumed bytes of text per compressed byte.
_PACKED_SUFFIX = re.compile(r"\.(?:gz|bz2|zst|zip)$", re.IGNORECASE)
_JSON = re.compile(r"\.(?:json|jsonl|ndjson)$", re.IGNORECASE)
_WIKIPEDIA = re.compile(r"\.xml(?:-p\d+p\d+)?$", re.IGNORECASE)
_TEXT = re.compile(r"(?:\.(?:txt|text)|^[^.]*)$", re.IGNORECASE)
# The list of pages that is published beside a dump.
_INDEX = re.compile(r"-multistream-index\d*\.txt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Found:
    """A file, and its path inside the given folder, which may name its language."""

    path: str
    inner: str  # Path below the folder that was given; "" if the file itself was given.


def units(
    options: preparation_options.PrepareCorpusOptions,
) -> tuple[list[input_units.Unit], list[str]]:
    """Returns the units of input, and the files that are not text.

    Raises:
        OSError: a file does not exist or cannot be read.
        ValueError: an archive is damaged or unsafe, there is nothing to read, or an
            option names a field, but no source has fields.
    """
    skipped: list[str] = []
    found: list[_Found] = []
    for path in files.expand(options.input_file) if options.input_file else []:
        if files.is_folder(path):
            found += _in_folder(path, options, skipped)
        else:
            found.append(_Found(path=path, inner=""))
    sources = [part for file in found for part in _sources(file, options, skipped)]
    sources += datasets.sources(options, _UNIT_EXAMPLES)
    if not sources:
        raise ValueError(
            f"Found no text in {', '.join(options.input_file)}; expected files named "
            ".txt, .json, .jsonl or .xml, compressed or not."
        )
    _check_fields(sources, options)
    for name in skipped:
        _LOG.warning("%s: skipped, because its name is not that of a text file.", name)
    return list(_grouped(sources)), skipped


def _check_fields(sources, options):
    """Refuses names of fields if no source has fields."""
    if any(source.format in ("json", "tfds") for source in sources):
        return
    for name in ("text_field", "language_field"):
        if not options.is_default(name):
            formats = ", ".join(sorted({source.format for source in sources}))
            raise ValueError(
                f"--{name} names a field of JSON objects or data sets, but the input "
                f"is read as {formats}; omit the flag. If the files contain JSON "
                "lines, pass --format=json."
            )


def _in_folder(folder, options, skipped):
    """Yields the files in and below a folder in order, without hidden ones."""
    waiting = [""]
    while waiting:
        inner = waiting.pop()
        path = os.path.join(folder, inner) if inner else folder
        if not files.is_folder(path):
            if _is_text(path, options):
                yield _Found(path=path, inner=inner)
            else:
                skipped.append(path)
            continue
        names = [name for name in files.list_folder(path) if name[0] != "."]
        waiting += [os.path.join(inner, name) for name in reversed(names)]


def _is_text(name, options):
    name = os.path.basename(name)
    if name.lower().endswith(".zip"):
        return True
    bare = _PACKED_SUFFIX.sub("", name)
    known = (_JSON, _WIKIPEDIA, _TEXT)
    if _INDEX.search(name) or name.endswith(files.SIDE_FILE_SUFFIX):
        return False
    return any(pattern.search(bare) for pattern in known)


def _sources(found, options, skipped) -> Iterator[input_units.Source]:
    """Yields the sources of a file."""
    size = files.size(found.path)
    packing = archives.packing(found.path)
    if packing == "zip":
        names = archives.members(found.path)
        for name in names:
            if _PACKED_SUFFIX.search(name) or not _is_text(name, options):
                skipped.append(f"{found.path}/{name}")
                continue
            yield input_units.Source(
                path=found.path,
                member=name,
                format=_format(name, options),
                language=_language(found.inner or name, found.path, options),
                num_bytes=size // len(names),
            )
        return
    source = input_units.Source(
        path=found.path,
        format=_format(found.path, options),
        language=_language(found.inner, found.path, options),
        num_bytes=size,
    )
    can_be_cut = {"json": ("",), "wikipedia": ("", "bz2")}
    if packing in can_be_cut.get(source.format, ()):
        step = _UNIT_BYTES if not packing else _UNIT_BYTES // _UNPACKED
        for start in range(0, max(size, 1), step):
            end = min(start + step, size)
            yield dataclasses.replace(
                source, start=start, end=end, num_bytes=end - start
            )
    else:
        yield source


def _format(name, options):
    if options.format != "auto":
        return options.format
    name = _PACKED_SUFFIX.sub("", name)
    if _JSON.search(name):
        return "json"
    return "wikipedia" if _WIKIPEDIA.search(name) else "prose"


def _language(inner, path, options):
    """Returns the language code that a folder is named by, or the default."""
    if not options.language_folders:
        return options.language
    folders = inner.replace("\\", "/").split("/")[:-1]
    if folders:
        return folders[0]
    if inner:
        raise ValueError(
            f"{path}: --language_folders expects every file in a folder named by its "
            "language, but this file is beside those folders."
        )
    return os.path.basename(os.path.dirname(os.path.abspath(path)))


def _grouped(sources):
    """Yields units of several small sources or one large source."""
    group: list[input_units.Source] = []
    size = number = 0
    for source in sources:
        if group and size + source.num_bytes > _UNIT_BYTES:
            yield input_units.Unit(number=number, sources=tuple(group))
            group, size, number = [], 0, number + 1
        group.append(source)
        size += source.num_bytes
    yield input_units.Unit(number=number, sources=tuple(group))
