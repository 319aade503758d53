"""Notices that files change while a run reads them."""

from collections.abc import Sequence

from bert_tf import files


class Unchanged:
    """Size and time of files, to compare with later."""

    def __init__(self, paths: Sequence[str]):
        facts = files.map_paths(files.size_and_time, paths)
        self._facts = dict(zip(paths, facts, strict=True))

    def check(self, paths: Sequence[str] | None = None) -> None:
        """Raises a ValueError if a file, or one of `paths`, has changed or is gone."""
        paths = list(self._facts if paths is None else paths)
        now = files.map_paths(_facts_or_none, paths)
        for path, facts in zip(paths, now, strict=True):
            if facts != self._facts[path]:
                raise ValueError(
                    f"{path} has changed since training started. Put the old file back "
                    "and start the same command again, or start a new run."
                )


def _facts_or_none(path):
    try:
        return files.size_and_time(path)
    except FileNotFoundError:
        return None
