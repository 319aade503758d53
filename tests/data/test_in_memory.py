"""Rows and JSON values of data in memory."""

import datetime
import decimal
import math

import numpy as np
import pytest

from bert_tf.data import in_memory

NAMES = [("text", "label"), ("text", "text_b", "label")]
ROW = {"text": "wet", "label": "rain"}


class NAType:
    """Missing values of pandas have a type of this name."""


@pytest.mark.parametrize(
    "data",
    [
        [("wet", "rain")],
        [["wet", "rain"]],
        [ROW],
        (ROW for _ in range(1)),
        {"text": ["wet"], "label": ["rain"]},
        (["wet"], ["rain"]),
        (np.array(["wet"]), iter(["rain"])),
        (("wet", "rain"),),  # A tuple of tuples has rows.
    ],
)
def test_rows_have_values_by_column(data):
    assert in_memory.rows_of(data, NAMES) == [ROW]


@pytest.mark.parametrize(
    "data, message",
    [
        (7, "Expected examples as a list, a table or a path, got 7"),
        (b"wet", "got b'wet'"),
        ([], "has no rows"),
        ({}, "has no rows"),
        ([1], r"Row 1 is 1; expected a dictionary or \(text, label\) or"),
        ([("wet",)], r"Row 1 has 1 values; expected \(text, label\)"),
        ((["wet"], ["a"], ["b"], ["c"]), "The tuple has 4 values"),
        ((["wet"], ["a", "b"]), "'text' has 1, 'label' has 2"),
        # Strings and sets would otherwise be read as columns of their items.
        ({"text": "wet", "label": "fog"}, "Column 'text' is 'wet'; expected a list"),
        ({"text": 7}, "Column 'text' is 7; expected a list"),
        ({"text": {"wet"}}, "Column 'text' is {'wet'}; expected a list"),
        (({"wet"}, {"rain"}), r"Row 1 is {'wet'}; expected a dictionary or \(text"),
        ({("wet", "rain")}, "Expected examples as a list, a table or a path, got {"),
        ({1: ["wet"], "1": ["dry"]}, "The data has 2 columns '1'; rename or drop all"),
    ],
)
def test_other_data_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        in_memory.rows_of(data, NAMES)


@pytest.mark.parametrize(
    "value, expected",
    [
        (np.str_("wet"), "wet"),
        (np.int64(3), 3),
        (np.array(["a", "b"]), ["a", "b"]),
        (("a", ("b",)), ["a", ["b"]]),
        ({1: np.float32(0.5)}, {"1": 0.5}),
        (decimal.Decimal("1.50"), "1.50"),
        (datetime.date(2018, 10, 11), "2018-10-11"),
        (math.nan, None),
        (NAType(), None),
    ],
)
def test_values_become_json(value, expected):
    assert in_memory.json_value(value, "row 1") == expected


def test_only_named_columns_are_kept_and_missing_optional_values_left_out():
    rows = [{**ROW, "id": None, "more": b""}, {**ROW, "id": 7}]
    found = in_memory.json_rows(rows, ("text", "label"), ("id",))
    assert found == [ROW, {**ROW, "id": 7}]
    with pytest.raises(ValueError, match="Row 2 has no column 'label'; its"):
        in_memory.json_rows([ROW, {"text": "dry"}], ("text", "label"))
