"""Options for the recorded model, and its checkpoint as it would be downloaded."""

import pytest

from bert_tf.tasks.feature_extraction import options as feature_extraction_options


@pytest.fixture(scope="session")
def released(copy_release, tmp_path_factory):
    """Folder with checkpoint, configuration and vocabulary beside each other."""
    return copy_release(tmp_path_factory.mktemp("release") / "released")


@pytest.fixture
def extraction_options(released, tmp_path):
    """Returns options for lines of text; keywords replace or add."""

    def create(lines=None, **values):
        if lines is not None:
            (tmp_path / "input.txt").write_text("".join(f"{li}\n" for li in lines))
        defaults = {
            "input_file": str(tmp_path / "input.txt"),
            "output_file": str(tmp_path / "output"),
            "init_checkpoint": str(released / "bert_model.ckpt"),
            "max_seq_length": 16,
            "layers": (-1, 0),
        }
        return feature_extraction_options.ExtractFeaturesOptions(**defaults | values)

    return create
