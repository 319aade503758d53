"""A table that training has padded, as checkpoints know it: without the padding."""

import numpy as np


class CutTable:
    """The first rows of a variable; what is assigned to them leaves zeros behind.

    Args:
        variable: Keras variable [padded rows, ...].
        num_rows: int, the rows that are no padding.

    Attributes:
        variable: the padded one.
        shape: tuple of int, without the padding.
    """

    def __init__(self, variable, num_rows):
        self.variable = variable
        self.shape = (num_rows, *variable.shape[1:])

    @property
    def value(self):
        """The rows that are no padding, a tensor of the shape."""
        return self.variable.value[: self.shape[0]]

    @property
    def trainable(self):
        """Whether the variable learns."""
        return self.variable.trainable

    @trainable.setter
    def trainable(self, value):
        self.variable.trainable = value

    def assign(self, rows):
        """Sets the rows, an array of the shape, and the padding to 0."""
        rows = np.asarray(rows)
        padded = np.zeros(self.variable.shape, rows.dtype)
        padded[: self.shape[0]] = rows
        self.variable.assign(padded)


def without_padding(variable, table):
    """Returns a slot as its weight is seen: cut where the weight is a `CutTable`."""
    if not isinstance(table, CutTable):
        return variable
    return CutTable(variable, table.shape[0])
