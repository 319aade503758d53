import pytest

from bert_tf.tasks.feature_extraction import examples


@pytest.mark.parametrize(
    "line, divided",
    [
        ("the bee", ("the bee", None)),
        ("the bee ||| is slow", ("the bee", "is slow")),
        ("a ||| b ||| c", ("a ||| b", "c")),  # The last one divides, as in 2018.
        ("a |||b", ("a |||b", None)),  # Without spaces it is text.
        ("  a \t", ("a", None)),
        ("", ("", None)),
    ],
)
def test_a_line_is_a_text_or_two(line, divided):
    assert examples.divided(line) == divided


def test_every_line_is_a_text_with_its_place(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a\n\nb ||| c\n")
    found = list(examples.read_examples(str(path)))
    assert [(line.text_a, line.text_b) for line in found] == [
        ("a", None),
        ("", None),
        ("b", "c"),
    ]
    assert found[2].place == f"{path}:3"
