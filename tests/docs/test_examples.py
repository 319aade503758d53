"""The scripts in docs/examples and docs/keras_guides run."""

import pathlib

import numpy as np
import pytest

import bert_tf

pytestmark = pytest.mark.slow

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))
# What the last call of an example returns has these keys, or is an array.
RESULTS = {
    "answer_questions": "answer",
    "choose": "ending",
    "classify": "label",
    "retrieve": "passages",
    "tag": "tags",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example, run_script, capsys):
    names = run_script(example)
    if example.stem in RESULTS:
        item = names["train"][0]
        is_pair = example.stem in ("answer_questions", "choose")
        [answer] = names["model"].predict([item[:2] if is_pair else item[0]])
        assert RESULTS[example.stem] in answer
    elif example.stem == "embed":
        assert names["vectors"].shape == (3, 16)
    else:
        shown = capsys.readouterr().out
        assert all(text in shown for text in names["texts"])


def test_each_use_has_an_example():
    uses = {*bert_tf.fine_tune.__all__, "embed", "fill_masks", "score_texts"}
    assert {path.stem for path in EXAMPLES} == uses


def test_the_guide_to_transfer_learning(run_script):
    names = run_script(DOCS / "keras_guides" / "transfer_learning.py")
    features = names["features"]
    np.testing.assert_array_equal(
        names["loaded"].predict(features), names["model"].predict(features)
    )
    assert names["encoder"].trainable_weights


def test_the_guide_to_training_loops(run_script):
    names = run_script(DOCS / "keras_guides" / "training_loop.py")
    assert np.isfinite(names["losses"]).all()
    assert int(names["optimizer"].iterations) == len(names["losses"]) == 16
