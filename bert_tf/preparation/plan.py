"""Plans the corpus: which documents and paragraphs go into which file."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert_tf import files
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import duplicates
from bert_tf.preparation import options as preparation_options
from bert_tf.preparation import parts as parts_module
from bert_tf.preparation import smoothing

_MEGABYTE = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Consecutive documents of a part."""

    part: int  # Index of the part.
    first: int  # Index of the first document.
    end: int  # Index after the last document.
    copy: int  # How often these documents were written before.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """The files to write."""

    shards: tuple[tuple[Run, ...], ...]  # The documents of each file, in order.
    num_bytes: int  # Approximate size of all files.
    kept_paths: dict[int, str]  # Part -> file with the mask of kept paragraphs.
    read: counts_module.ReadCounts  # Summed over all parts.
    duplicate_paragraphs: int  # Left out, not counting those of near duplicates.
    near_duplicates: int  # Documents left out.
    languages: dict[str, tuple[int, int]]  # Code -> characters found and written.


def make(
    parts: Sequence[parts_module.Part],
    options: preparation_options.PrepareCorpusOptions,
) -> Plan:
    """Returns the plan for a corpus.

    Files are split between documents. A document larger than `shard_mb` gets a file of
    its own.

    Args:
        parts: what was read, in order.
        options: what to leave out, and the size of the files.

    Raises:
        OSError: a part cannot be read.
    """
    tables = [part.documents() for part in parts]
    documents = np.concatenate([np.zeros(0, parts_module.DOCUMENT), *tables])
    kept = np.ones(len(documents), bool)
    if options.near_duplicates:
        kept = duplicates.first_documents(parts)
    num_near = int((~kept).sum())
    sizes = np.where(kept, documents["bytes"], 0).astype(np.int64)
    kept_paths: dict[int, str] = {}
    num_repeated = 0
    if options.deduplicate_paragraphs:
        sizes, kept_paths, num_repeated = _without_repeated(parts, tables, kept)
    codes, languages = _languages(parts, tables)
    share = sizes / np.maximum(documents["bytes"], 1)
    characters = np.round(documents["characters"] * share).astype(np.int64)
    copies = (sizes > 0).astype(np.int64)
    if options.language_smoothing is not None:
        copies = smoothing.copies(
            languages,
            characters,
            codes,
            exponent=options.language_smoothing,
            seed=options.random_seed,
        )
    found = np.bincount(languages, characters, minlength=len(codes))
    taken = np.bincount(languages, characters * copies, minlength=len(codes))
    read = counts_module.ReadCounts()
    for part in parts:
        read.add(part.counts)
    return Plan(
        shards=tuple(_shards(tables, sizes, copies, options.shard_mb * _MEGABYTE)),
        num_bytes=int((sizes * copies).sum()),
        kept_paths=kept_paths,
        read=read,
        duplicate_paragraphs=num_repeated,
        near_duplicates=num_near,
        languages={
            code: (int(found[number]), int(taken[number]))
            for number, code in enumerate(codes)
        },
    )


def load_kept(path: str) -> np.ndarray:
    """Returns the mask of kept paragraphs, bool [P], padded to a multiple of 8."""
    with files.open_file(path, "rb") as file:
        return np.unpackbits(np.frombuffer(file.read(), np.uint8)).astype(bool)


def _without_repeated(parts, tables, kept_documents):
    """Returns (sizes of documents, mask files, number of paragraphs left out)."""
    kept = duplicates.first_paragraphs(parts, kept_documents)
    sizes: list[np.ndarray] = []
    paths: dict[int, str] = {}
    place = num_repeated = first = 0
    for number, (part, table) in enumerate(zip(parts, tables, strict=True)):
        rows = part.paragraphs()
        some = kept[place : place + len(rows)]
        path = part.stem + ".kept"
        with files.complete_or_absent(path, "wb") as file:
            file.write(np.packbits(some).tobytes())
        paths[number] = path
        ends = np.cumsum(table["paragraphs"], dtype=np.int64)
        total = np.concatenate([[0], np.cumsum(rows["bytes"] * some, dtype=np.int64)])
        sizes.append(total[ends] - total[ends - table["paragraphs"]])
        of_kept = np.repeat(
            kept_documents[first : first + len(table)], table["paragraphs"]
        )
        num_repeated += int((of_kept & ~some).sum())
        place += len(rows)
        first += len(table)
    return np.concatenate([np.zeros(0, np.int64), *sizes]), paths, num_repeated


def _languages(parts, tables):
    """Returns the codes of all languages, and the language index of each document."""
    codes = sorted({code for part in parts for code in part.languages})
    numbers = [np.zeros(0, np.int64)]
    for part, table in zip(parts, tables, strict=True):
        local = np.array([codes.index(code) for code in part.languages], np.int64)
        numbers.append(local[table["language"]] if len(table) else numbers[0])
    return codes, np.concatenate(numbers)


def _shards(tables, sizes, copies, limit):
    """Yields the runs of each file: all first copies, then all second copies."""
    runs: list[Run] = []
    used = 0
    ends = np.cumsum([len(table) for table in tables], dtype=np.int64)
    for copy in range(int(copies.max(initial=0))):
        for document in np.flatnonzero(copies > copy):
            # One more byte, for the blank line after the document.
            size = int(sizes[document]) + 1
            if runs and used + size > limit:
                yield tuple(runs)
                runs, used = [], 0
            part = int(np.searchsorted(ends, document, side="right"))
            place = int(document - (ends[part] - len(tables[part])))
            _append(runs, Run(part=part, first=place, end=place + 1, copy=copy))
            used += size
    if runs:
        yield tuple(runs)


def _append(runs, run):
    last = runs[-1] if runs else None
    if last and (last.part, last.end, last.copy) == (run.part, run.first, run.copy):
        runs[-1] = dataclasses.replace(last, end=run.end)
    else:
        runs.append(run)
