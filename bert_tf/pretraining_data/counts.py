"""What create_pretraining_data read and made, in numbers."""

import dataclasses
from collections.abc import Mapping

import numpy as np


@dataclasses.dataclass(kw_only=True)
class Counts:
    """Numbers of one shard, or of several added up."""

    documents: int = 0  # With at least one word piece.
    sentences: int = 0  # With at least one word piece.
    pieces: int = 0  # Word pieces of the text.
    unknown: int = 0  # Of these, [UNK].
    instances: int = 0  # Sequences written.
    rows: int = 0  # Rows that they are in; fewer where several share one.
    filled: int = 0  # Places of these that are no padding.
    masked: int = 0  # Places of these that are predicted.
    random_next: int = 0  # Sequences whose B is from another document.

    def add(self, other: "Counts") -> None:
        """Adds another shard's numbers."""
        for field in dataclasses.fields(self):
            total = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, total)

    def add_columns(self, columns: Mapping[str, np.ndarray]) -> None:
        """Adds sequences, given as columns of `schema.pretraining`."""
        self.rows += len(columns["input_ids"])
        if "sequence_ids" in columns:
            self.instances += int(columns["sequence_ids"].max(axis=1).sum())
        else:
            self.instances += len(columns["input_ids"])
        self.filled += int(columns["input_mask"].sum(dtype=np.int64))
        if "masked_lm_weights" in columns:
            self.masked += int(columns["masked_lm_weights"].sum(dtype=np.float64))
        if "next_sentence_labels" in columns:
            labels = columns["next_sentence_labels"]
            self.random_next += int(labels.sum(dtype=np.int64))


def check_documents(num_documents: int, next_sentence: bool, path: str) -> None:
    """Checks that B can come from another document than A.

    Args:
        num_documents: documents of the shard.
        next_sentence: whether there is to be a B.
        path: a file of the shard, for the message.

    Raises:
        ValueError: there is one document only.

    With one document the release wrote true pairs with the label of random ones.
    """
    if next_sentence and num_documents == 1:
        raise ValueError(
            f"{path}: found one document, expected at least two to draw random next "
            f"sentences from; put blank lines between documents, or give "
            f"--next_sentence=false."
        )
