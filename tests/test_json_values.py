import math

import pytest

from bert_tf import json_values

FILE = {"name": str, "size?": int | None}


@pytest.mark.parametrize(
    "value, shape, found",
    [
        (7, int, None),
        (7, str, ("at", 7)),
        (True, int, ("at", True)),  # In Python, a bool is an int.
        (True, int | bool, None),
        (None, int | None, None),
        ([1, 2], [int], None),
        ([1, "x"], [int], ("at[1]", "x")),
        ({"0": 1}, [int], ("at", {"0": 1})),
        ({"name": "a"}, FILE, None),
        ({"name": "a", "size": None, "more": []}, FILE, None),
        ({"name": "a", "size": "b"}, FILE, ("at.size", "b")),
        ({"size": 7}, FILE, ("at.name", json_values.MISSING)),
        ([["name", "a"]], FILE, ("at", [["name", "a"]])),
        ({"a": 1, "b": [None]}, {str: (int, [None])}, None),
        ({"a": 1, "b": ["x"]}, {str: (int, [None])}, ("at.b[0]", "x")),
        ({"a": "x", "b": 1}, {"a": str, str: int}, None),
        ({"a": "x", "b": "x"}, {"a": str, str: int}, ("at.b", "x")),
        ("dev_2", lambda part: part.startswith("dev"), None),
        ("test", lambda part: part.startswith("dev"), ("at", "test")),
    ],
)
def test_the_first_unexpected_value_is_found(value, shape, found):
    assert json_values.unexpected(value, shape, "at") == found


def test_numbers_that_json_does_not_have_are_null():
    value = {"a": [math.nan, 1.0, {"b": math.inf}], "c": "NaN"}
    assert json_values.with_null(value) == {"a": [None, 1.0, {"b": None}], "c": "NaN"}
    assert math.isnan(json_values.nan_if_null(None))
    assert json_values.nan_if_null(0.5) == 0.5
