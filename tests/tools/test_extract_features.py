"""extract_features, called as a user calls it."""

import pytest

from tests import runs


@pytest.fixture
def extract(run_tool, golden, tmp_path):
    """Runs the tool on two lines; keywords replace or add flags."""
    (tmp_path / "input.txt").write_text("The bee ||| is slow\nthe lamp\n")

    flags = {
        "input_file": tmp_path / "input.txt",
        "output_file": tmp_path / "output.jsonl",
        "init_checkpoint": golden / "model" / "bert_model.ckpt",
        "vocab_file": golden / "vocab.txt",
        "layers": "-1",
        "max_seq_length": 16,
    }
    return lambda **changes: run_tool("extract_features", **flags | changes)


def test_lines_in_vectors_out(extract, tmp_path):
    result = extract()
    assert result.stdout == f"Vectors of 2 lines are in {tmp_path / 'output.jsonl'}.\n"
    lines = runs.json_lines(tmp_path / "output.jsonl")
    first, second = [line["features"] for line in lines]
    assert first[1]["token"] == "the"
    assert [piece["token"] for piece in second] == ["[CLS]", "the", "lamp", "[SEP]"]
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "changes, exit_code, message",
    [
        ({"input_file": "none.txt"}, 1, "No such file: none.txt"),
        ({"layers": "-1,-1"}, 2, "expected one or more different layers"),
    ],
)
def test_what_does_not_fit_ends_in_one_line(extract, changes, exit_code, message):
    result = extract(**changes, exit_code=exit_code)
    assert message in result.refusal
