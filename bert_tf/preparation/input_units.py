"""Records of the input to read: sources, and units of them."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """A file, a part of a file, or a part of a data set."""

    path: str  # The file, or the name of the data set.
    member: str = ""  # The file inside a zip archive.
    format: str  # "prose", "sentences", "json", "wikipedia" or "tfds".
    language: str  # Language code, from the folder's name or the default.
    start: int = 0  # First byte of the part; first example of a data set.
    end: int | None = None  # Byte or example after the last one; None: to the end.
    num_bytes: int = 0  # Size on disk, for progress.

    @property
    def name(self) -> str:
        """The name used in messages."""
        return f"{self.path}/{self.member}" if self.member else self.path


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unit:
    """What one task reads."""

    number: int  # From 0, in the order of the corpus.
    sources: tuple[Source, ...]  # In order.

    @property
    def num_bytes(self) -> int:
        """Size on disk of all sources."""
        return sum(source.num_bytes for source in self.sources)
