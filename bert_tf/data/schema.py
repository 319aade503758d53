"""The columns of TFRecord files, declared once for writing, reading and checking.

Shape letters: B batch, S sequence, M masked positions, K sequences of a packed row.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.data import packing

# Columns with one value per position of the sequence; length buckets trim these.
SEQUENCE_COLUMNS = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "tag_ids",
    "sequence_ids",
    "position_ids",
)
# The same for a query that shares a row with its passages.
QUERY_COLUMNS = ("query_input_ids", "query_input_mask")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column: the same number of values in every record."""

    name: str
    length: int | None  # Values per record. None: one value, and batches are [B].
    dtype: str  # "int32" or "float32" in batches; records hold int64 or float.

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row in a batch."""
        return () if self.length is None else (self.length,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a file, in the order in which they are written."""

    columns: tuple[Column, ...]  # With unique names.

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    def __str__(self) -> str:
        return ", ".join(f"{c.name}[{c.length or 1}]" for c in self.columns)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name}; there are {', '.join(self.names)}")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Returns the columns as plain dicts, for JSON."""
        return [dataclasses.asdict(column) for column in self.columns]

    @classmethod
    def from_dicts(cls, columns: list[dict[str, Any]]) -> "Schema":
        """Returns the schema that `to_dicts` was called on.

        Raises:
            ValueError: two columns have the same name, or a dtype is not known.
        """
        schema = cls(columns=tuple(Column(**column) for column in columns))
        if len(set(schema.names)) < len(columns):
            raise ValueError(f"Expected unique columns, got {', '.join(schema.names)}.")
        for column in schema.columns:
            if column.dtype not in ("int32", "float32"):
                raise ValueError(
                    f"Column {column.name}: expected int32 or float32, "
                    f"got {column.dtype!r}."
                )
        return schema

    def rows(self, columns: Mapping[str, np.ndarray]) -> int:
        """Checks arrays [B] or [B, length] against the schema, and returns B.

        Raises:
            ValueError: a column is missing, unknown, or has a different shape.
        """
        if set(columns) != set(self.names):
            raise ValueError(
                f"Expected the columns {', '.join(self.names)}, "
                f"got {', '.join(columns)}."
            )
        num_rows = len(columns[self.names[0]])
        for column in self.columns:
            shape = np.shape(columns[column.name])
            if shape != (num_rows, *column.shape):
                raise ValueError(
                    f"Column {column.name}: expected the shape "
                    f"{(num_rows, *column.shape)}, got {shape}."
                )
        return num_rows


def infer(columns: Mapping[str, np.ndarray]) -> Schema:
    """Returns the schema of one record: int64 or float32 [length] by name."""
    return _create(
        {name: len(values) for name, values in columns.items()},
        [name for name, values in columns.items() if values.dtype == np.float32],
    )


def _create(lengths, floats):
    return Schema(
        columns=tuple(
            Column(
                name=name,
                length=length,
                dtype="float32" if name in floats else "int32",
            )
            for name, length in lengths.items()
        )
    )


def pretraining(
    max_seq_length: int,
    max_predictions_per_seq: int,
    next_sentence: bool = True,
    *,
    sequences_per_row: int | None = None,
) -> Schema:
    """Returns the columns of the release's pretraining records.

    Args:
        max_seq_length: number of positions in a sequence, S.
        max_predictions_per_seq: number of masked positions in a sequence, M.
        next_sentence: whether there is a column `next_sentence_labels`.
        sequences_per_row: maximum number of sequences in a packed row, K; None if rows
            are not packed. Packed rows have the columns `sequence_ids`,
            `position_ids` and `cls_positions` in addition.

    Source: create_pretraining_data.py, 2018.
    """
    lengths = dict.fromkeys(packing.ENCODER_COLUMNS, max_seq_length)
    masked = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    lengths |= dict.fromkeys(masked, max_predictions_per_seq)
    if sequences_per_row is not None:
        lengths |= dict.fromkeys(("sequence_ids", "position_ids"), max_seq_length)
        lengths["cls_positions"] = sequences_per_row
    if next_sentence:
        lengths["next_sentence_labels"] = sequences_per_row or 1
    return _create(lengths, ["masked_lm_weights"])
