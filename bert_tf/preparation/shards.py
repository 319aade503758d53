"""Writes one file of the corpus from the parts: the work of one writing task."""

import dataclasses
import os
from collections.abc import Callable
from collections.abc import Mapping

import numpy as np

from bert_tf import files
from bert_tf.preparation import parts as parts_module
from bert_tf.preparation import plan as plan_module
from bert_tf.preparation import text_statistics

_BLOCK_BYTES = 1 << 22  # Of text, written at a time.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A file to write."""

    number: int  # From 0.
    path: str  # The file to write.
    statistics_path: str  # Written last: if it exists, the file is complete.
    runs: tuple[plan_module.Run, ...]  # The documents of the file.
    stems: Mapping[int, str]  # Part -> path of its files without suffix.
    kept_paths: Mapping[int, str]  # Part -> mask file, if some paragraphs are dropped.
    truncation_noise: float  # Share of the sentences that are cut.
    random_seed: int


def write(task: Task, on_bytes: Callable[[int], None]) -> None:
    """Writes a file of the corpus and its statistics, unless it is already complete.

    Args:
        task: what to write.
        on_bytes: called with the number of bytes written since the last call.

    Raises:
        OSError: a part cannot be read, or the file cannot be written.
    """
    if files.exists(task.statistics_path) and files.exists(task.path):
        on_bytes(files.size(task.path))
        return
    statistics = text_statistics.Statistics()
    with files.complete_or_absent(task.path, "wb") as file:
        for run in task.runs:
            for lines in _documents(task, run):
                for data in lines:
                    file.write(data)
                    statistics.add(data)
                    on_bytes(len(data))
                file.write(b"\n")
                statistics.end_document()
    with files.complete_or_absent(task.statistics_path, "wb") as file:
        statistics.save(file)


def shard_path(folder: str, number: int, num_shards: int) -> str:
    """Returns the path of a file of the corpus."""
    return os.path.join(folder, f"corpus-{number:05d}-of-{num_shards:05d}.txt")


def _documents(task, run):
    """Yields documents as iterators of blocks of whole lines."""
    stem = task.stems[run.part]
    part = parts_module.load(stem)
    if part is None:
        raise FileNotFoundError(f"{stem}.json is missing; start the command again.")
    table = part.documents()
    sizes = table["paragraphs"].astype(np.int64)
    first_row = int(sizes[: run.first].sum())
    kept = None
    if run.part in task.kept_paths:
        kept = plan_module.load_kept(task.kept_paths[run.part])
    with part.open_text() as text:
        text.seek(int(table["bytes"][: run.first].sum(dtype=np.int64)))
        for number in range(run.first, run.end):
            num_rows = int(sizes[number])
            rows = part.paragraphs(first_row, num_rows)["bytes"].astype(np.int64)
            chosen = None if kept is None else kept[first_row : first_row + num_rows]
            first_row += num_rows
            if chosen is not None and not chosen.any():
                text.seek(int(rows.sum()), os.SEEK_CUR)
                continue
            blocks = _blocks(text, rows, chosen)
            if task.truncation_noise:
                seed = [task.random_seed, run.part, number, run.copy]
                blocks = _truncated(blocks, task.truncation_noise, seed)
            yield blocks


def _blocks(text, sizes, chosen):
    """Yields the chosen paragraphs in blocks."""
    start = 0
    while start < len(sizes):
        room = np.cumsum(sizes[start:])
        count = max(1, int(np.searchsorted(room, _BLOCK_BYTES, side="right")))
        data = text.read(int(room[count - 1]))
        if chosen is not None:
            ends = room[:count]
            limits = zip(ends - sizes[start : start + count], ends, strict=True)
            keep = chosen[start : start + count]
            pieces = [data[a:b] for (a, b), k in zip(limits, keep, strict=True) if k]
            data = b"".join(pieces)
        if data:
            yield data
        start += count


def _truncated(blocks, share, seed):
    """Yields blocks in which a share of the sentences is cut at a random place.

    At least one word is kept, or one character if the sentence has no spaces.
    """
    # The release's README recommends cutting about 2 % of the sentences, so that
    # fine-tuning copes with input that is not a complete sentence.
    random = np.random.default_rng(seed)
    for data in blocks:
        lines = data.decode("utf-8").removesuffix("\n").split("\n")
        for number in np.flatnonzero(random.random(len(lines)) < share):
            words = lines[number].split(" ")
            if len(words) > 1:
                lines[number] = " ".join(words[: random.integers(1, len(words))])
            elif len(words[0]) > 1:
                lines[number] = words[0][: random.integers(1, len(words[0]))]
        yield ("\n".join(lines) + "\n").encode("utf-8")
