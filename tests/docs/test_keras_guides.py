"""The scripts in docs/keras_guides run, with a tiny model in place of BERT-Base."""

import pathlib
import runpy

import numpy as np
import pytest

pytestmark = pytest.mark.slow

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "keras_guides"


@pytest.fixture
def run_guide(copy_release, tmp_path, monkeypatch):
    def run(name):
        tiny = copy_release(tmp_path / "tiny")
        monkeypatch.chdir(tmp_path)
        source = (FOLDER / name).read_text()
        assert source.count('"bert-base-uncased"') == 1
        script = pathlib.Path(name)
        script.write_text(source.replace('"bert-base-uncased"', repr(str(tiny))))
        return runpy.run_path(name)

    return run


# Keras hands its variables to NumPy 2 in NumPy 1's way.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_the_guide_to_transfer_learning(run_guide):
    names = run_guide("transfer_learning.py")
    features = names["features"]
    np.testing.assert_array_equal(
        names["loaded"].predict(features), names["model"].predict(features)
    )
    assert names["encoder"].trainable_weights


def test_the_guide_to_training_loops(run_guide):
    names = run_guide("training_loop.py")
    assert np.isfinite(names["losses"]).all()
    assert int(names["optimizer"].iterations) == len(names["losses"]) == 16
