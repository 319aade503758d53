"""What the tests of pretraining share."""

import pytest

from bert_tf.checkpoints import formats


@pytest.fixture
def opened_checkpoints(monkeypatch):
    """List of the paths that are opened as checkpoints during the test."""
    paths = []
    original = formats.open_source

    def record(path, **values):
        paths.append(str(path))
        return original(path, **values)

    monkeypatch.setattr(formats, "open_source", record)
    return paths
