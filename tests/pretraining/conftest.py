import pytest


@pytest.fixture(scope="session")
def create_data(golden, run_tool, tmp_path_factory):
    """Runs create_pretraining_data on the small text; returns the path of records."""

    def create(**flags):
        path = tmp_path_factory.mktemp("records") / "examples.tfrecord"
        usual = {"input_file": golden / "text.txt", "vocab_file": golden / "vocab.txt"}
        flags = {**usual, "output_file": path, **flags}
        run_tool("create_pretraining_data", **flags)
        return path

    return create
