"""Counts of what create_pretraining_data has read and written."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(kw_only=True)
class Counts:
    """Counts of one shard, or of several added up."""

    documents: int = 0  # With at least one word piece.
    sentences: int = 0  # With at least one word piece.
    pieces: int = 0  # Word pieces of the text.
    unknown: int = 0  # Pieces that are [UNK].
    instances: int = 0  # Sequences written.
    rows: int = 0  # Rows written; fewer than sequences if these are packed.
    filled: int = 0  # Positions that are not padding.
    masked: int = 0  # Positions that are predicted.
    random_next: int = 0  # Sequences whose B is from another document.

    @property
    def unknown_share(self) -> float:
        """Share of the pieces that are [UNK]."""
        return self.unknown / max(self.pieces, 1)

    def add(self, other: "Counts") -> None:
        """Adds the counts of another shard."""
        for field in dataclasses.fields(self):
            total = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, total)

    def add_text(self, text: Any, unk_id: int, options: Any, path: str) -> None:
        """Adds the text of a shard, and checks it with `check_documents`.

        Args:
            text: `pairs.Text` of NumPy arrays.
            unk_id: id of [UNK].
            options: of create_pretraining_data.
            path: a file of the shard.
        """
        num_documents = len(text.document_starts) - 1
        self.documents += num_documents
        self.sentences += len(text.sentence_starts) - 1
        self.pieces += len(text.ids)
        self.unknown += int((text.ids == unk_id).sum())
        check_documents(num_documents, options.next_sentence, path)

    def add_columns(self, columns: Mapping[str, np.ndarray]) -> None:
        """Adds sequences, given as columns of `schema.pretraining`."""

        def total(name):
            return int(np.sum(columns.get(name, 0), dtype=np.float64))

        self.rows += len(columns["input_ids"])
        # Rows that are not packed have one sequence each.
        numbers = columns.get("sequence_ids", columns["input_mask"])
        self.instances += int(numbers.max(axis=1).sum())
        self.filled += total("input_mask")
        self.masked += total("masked_lm_weights")
        self.random_next += total("next_sentence_labels")


def check_unknown(counts: Counts, largest_share: float) -> None:
    """Checks that the vocabulary suits the text.

    Raises:
        ValueError: too large a share of the pieces is [UNK].
    """
    if counts.unknown_share > largest_share:
        raise ValueError(
            f"{counts.unknown_share:.1%} of {counts.pieces:,} pieces are [UNK], and "
            f"--max_unknown_share={largest_share:g}: the vocabulary, or "
            "--do_lower_case, does not suit the text. Learn one with "
            "bert_tf vocabulary, or pass a larger share."
        )


def check_documents(num_documents: int, next_sentence: bool, path: str) -> None:
    """Checks that B can come from another document than A.

    Args:
        num_documents: number of documents of the shard.
        next_sentence: whether sequences have a B.
        path: a file of the shard, for the message.

    Raises:
        ValueError: there is only one document. The release then took a random B from
            A's own document, so that pairs that follow each other could get label 1.
    """
    if next_sentence and num_documents == 1:
        raise ValueError(
            f"{path}: found one document, but random next sentences need at least two. "
            "Put blank lines between documents, or pass --next_sentence=false."
        )
