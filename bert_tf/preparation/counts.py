"""What was met while raw text was read, in numbers."""

import dataclasses


@dataclasses.dataclass(kw_only=True)
class ReadCounts:
    """Numbers of one unit of input, or of several added up."""

    bytes: int = 0  # Of the files, as they lie on the disk.
    documents: int = 0  # With at least one sentence.
    paragraphs: int = 0  # Of these.
    headings: int = 0  # Left out, title pages and ornaments among them.
    invalid_bytes: int = 0  # Dropped because they are no UTF-8.
    empty_documents: int = 0  # Left out: no running text in them.
    skipped_pages: int = 0  # Of Wikipedia: redirects and what is no article.

    def add(self, other: "ReadCounts") -> None:
        """Adds another unit's numbers."""
        for field in dataclasses.fields(self):
            total = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, total)
