"""Names of files, folders and data sets -> units of input, each read by itself."""

import dataclasses
import logging
import os
import re
from collections.abc import Iterator

from bert_tf import files
from bert_tf.preparation import archives
from bert_tf.preparation import options as preparation_options

_LOG = logging.getLogger(__name__)
# Text that is read as one unit: small enough that many machines have work, and that a
# killed run loses little. What is read does not depend on the number of workers.
_UNIT_BYTES = 8_000_000
_UNIT_EXAMPLES = 20_000
_UNPACKED = 4  # Bytes of text that a packed byte is taken for.
_PACKED_SUFFIX = re.compile(r"\.(?:gz|bz2|zst|zip)$", re.IGNORECASE)
_JSON = re.compile(r"\.(?:json|jsonl|ndjson)$", re.IGNORECASE)
_WIKIPEDIA = re.compile(r"\.xml(?:-p\d+p\d+)?$", re.IGNORECASE)
_TEXT = re.compile(r"(?:\.(?:txt|text)|^[^.]*)$", re.IGNORECASE)
# Beside a dump lies a list of its pages.
_INDEX = re.compile(r"-multistream-index\d*\.txt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """A file, or a part of one, or of a data set."""

    path: str  # The file; of a data set its name.
    member: str = ""  # Of a zip archive: the file in it.
    format: str  # "prose", "sentences", "json", "wikipedia" or "tfds".
    language: str  # Its code, where the source's place tells; else the default.
    start: int = 0  # First byte of the part; of a data set the first example.
    end: int | None = None  # Byte, or example, after the last one; None: to the end.
    num_bytes: int = 0  # Of the file that is read for it.

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.path}/{self.member}" if self.member else self.path


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unit:
    """What is read in one go."""

    number: int  # From 0, in the order of the corpus.
    sources: tuple[Source, ...]  # In order.

    @property
    def num_bytes(self) -> int:
        """Bytes of the files that are read for it."""
        return sum(source.num_bytes for source in self.sources)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Found:
    """A file, and the folder or archive whose names may tell its language."""

    path: str  # The file.
    inner: str  # Its name below the folder that was given; "" for a file given.


def units(
    options: preparation_options.PrepareCorpusOptions,
) -> tuple[list[Unit], list[str]]:
    """Returns the units that the options name, and the files that are no text.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: an archive is damaged or hostile, or there is nothing to read.
    """
    skipped, found = [], []
    for path in files.expand(options.input_file) if options.input_file else []:
        if files.is_folder(path):
            found += _in_folder(path, options, skipped)
        else:
            found.append(_Found(path=path, inner=""))
    sources = [part for file in found for part in _sources(file, options, skipped)]
    if options.tfds_name:
        from bert_tf.preparation import datasets

        sources += datasets.sources(options, _UNIT_EXAMPLES)
    if not sources:
        raise ValueError(
            f"There is no text in {', '.join(options.input_file)}; expected files "
            "named .txt, .json, .jsonl or .xml, packed or not."
        )
    for name in skipped:
        _LOG.warning("%s: no text by its name; left out.", name)
    return list(_grouped(sources)), skipped


def _in_folder(folder, options, skipped):
    """Yields the files in and below a folder, hidden ones apart, in order."""
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


def _sources(found, options, skipped) -> Iterator[Source]:
    """Yields the sources of a file."""
    size = files.size(found.path)
    packing = archives.packing(found.path)
    if packing == "zip":
        names = archives.members(found.path)
        for name in names:
            if _PACKED_SUFFIX.search(name) or not _is_text(name, options):
                skipped.append(f"{found.path}/{name}")
                continue
            yield Source(
                path=found.path,
                member=name,
                format=_format(name, options),
                language=_language(found.inner or name, found.path, options),
                num_bytes=size // len(names),
            )
        return
    source = Source(
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
    """Returns the code that the folder of a file stands for, or the default."""
    if not options.language_folders:
        return options.language
    folders = inner.replace("\\", "/").split("/")[:-1]
    if folders:
        return folders[0]
    if inner:
        raise ValueError(
            f"{path}: expected every file in a folder named by its language "
            "(--language_folders), got one beside those folders."
        )
    return os.path.basename(os.path.dirname(os.path.abspath(path)))


def _grouped(sources):
    """Yields units of several small sources, or of one large one."""
    group, size, number = [], 0, 0
    for source in sources:
        if group and size + source.num_bytes > _UNIT_BYTES:
            yield Unit(number=number, sources=tuple(group))
            group, size, number = [], 0, number + 1
        group.append(source)
        size += source.num_bytes
    yield Unit(number=number, sources=tuple(group))
