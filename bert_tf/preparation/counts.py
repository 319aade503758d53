"""Counts of what was read from raw text and what was left out."""

import dataclasses


@dataclasses.dataclass(kw_only=True)
class ReadCounts:
    """Counts of one unit of input, or the sum of several."""

    bytes: int = 0  # Size of the files on disk.
    documents: int = 0  # Documents with at least one sentence.
    paragraphs: int = 0  # Paragraphs of these documents.
    headings: int = 0  # Left out, including title pages and ornaments.
    invalid_bytes: int = 0  # Dropped because they are not UTF-8.
    empty_documents: int = 0  # Left out, because they have no running text.
    skipped_pages: int = 0  # Wikipedia pages that are redirects or not articles.

    def add(self, other: "ReadCounts") -> None:
        """Adds the counts of another unit."""
        for field in dataclasses.fields(self):
            total = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, total)
