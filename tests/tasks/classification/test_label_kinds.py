"""Labels: one class, any number of them, a number."""

import pytest

from bert_tf.tasks.classification import examples as examples_module

KNOWN = ("rain", "wind")


@pytest.mark.parametrize(
    "text, separator, names",
    [
        ("rain", None, ("rain",)),
        ("rain ", None, ("rain",)),
        ("rain,wind", None, ("rain,wind",)),  # One class with a comma in its name.
        ("rain, wind", ",", ("rain", "wind")),
        ("rain ; ;wind", ";", ("rain", "wind")),
        ("", ";", ()),  # None of the classes.
    ],
)
def test_a_cell_names_its_classes(text, separator, names):
    assert examples_module.names_in(text, separator) == names


@pytest.mark.parametrize(
    "kind, text, message",
    [
        ("single_label", "", "the label is empty"),
        ("single_label", "snow", "the label 'snow' is not one of rain, wind"),
        ("multi_label", "rain,snow", "the label 'snow' is not one of rain, wind"),
        (
            "single_label",
            "Rain",
            "'Rain' is another spelling of 'rain'; correct",
        ),
        ("single_label", "NaN", "the label 'NaN' stands for a missing value"),
        ("multi_label", "rain,null", "the label 'null' stands for a missing value"),
        ("multi_label", "rain,rain", "contains a class twice"),
        ("regression", "much", "the label 'much' is not a finite number"),
        ("regression", "nan", "is not a finite number"),
        ("regression", "inf", "is not a finite number"),
    ],
)
def test_a_label_that_cannot_be_is_refused(kind, text, message):
    separator = "," if kind == "multi_label" else None
    known = () if kind == "regression" else KNOWN
    with pytest.raises(ValueError, match=message):
        examples_module.check_label(text, known, kind=kind, separator=separator)


@pytest.mark.parametrize(
    "kind, text",
    [("single_label", "rain"), ("multi_label", ""), ("regression", "-1.5e2")],
)
def test_a_label_that_can_be_is_taken(kind, text):
    separator = "," if kind == "multi_label" else None
    examples_module.check_label(text, KNOWN, kind=kind, separator=separator)
