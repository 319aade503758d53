"""extract_features, called as a user calls it."""

import importlib.util
import json

import numpy as np
import pytest


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


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_in_vectors_out(extract, tmp_path):
    result = extract()
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"Vectors of 2 lines are in {tmp_path / 'output.jsonl'}.\n"
    first, second = records(tmp_path / "output.jsonl")
    assert [piece["token"] for piece in second["features"]] == [
        "[CLS]",
        "the",
        "lamp",
        "[SEP]",
    ]
    assert [piece["token"] for piece in first["features"]][1] == "the"
    assert "Traceback" not in result.stderr


def test_dtype_and_backend_follow_their_flags(extract, tmp_path):
    def values(**flags):
        assert extract(**flags).exit_code == 0
        record = records(tmp_path / "output.jsonl")[0]
        return np.array([p["layers"][0]["values"] for p in record["features"]])

    exact, rounded = values(), values(dtype="bfloat16")
    assert 0 < np.abs(rounded - exact).max() < 0.1
    if importlib.util.find_spec("openvino"):
        np.testing.assert_allclose(values(backend="openvino"), exact, atol=1e-4)
        return
    result = extract(backend="openvino")
    assert result.exit_code == 1
    assert "pip install 'bert_tf[openvino]'" in result.refusal


@pytest.mark.parametrize(
    "changes, exit_code, message",
    [
        ({"input_file": "none.txt"}, 1, "No such file: none.txt"),
        ({"normalize": "true"}, 2, "needs --pooling"),
    ],
)
def test_what_does_not_fit_ends_in_one_line(extract, changes, exit_code, message):
    result = extract(**changes)
    assert result.exit_code == exit_code
    assert message in result.refusal
