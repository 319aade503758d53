"""Data sets by name on a machine without a network."""

import socket
import time
import types

import pytest

from bert_tf.data import named_datasets


@pytest.fixture
def offline(monkeypatch):
    """No host name can be resolved, as on a machine without a network."""

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    pytest.importorskip("tensorflow_datasets")
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(named_datasets, "_WAITS_S", (0.0, 0.1))


# The progress bars of tensorflow-datasets.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_without_a_network_a_download_fails_within_seconds(offline, tmp_path):
    begin = time.monotonic()
    with pytest.raises(
        OSError, match=r"rajpurkar.github.io cannot be reached \(Name .* copy its folde"
    ):
        named_datasets.prepared_builder("squad/v1.1", str(tmp_path))
    assert time.monotonic() - begin < 60  # It would be 207 s.


def test_a_server_that_can_be_reached_is_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as server:
        named_datasets._check_reachable(*server.getsockname())


@pytest.mark.parametrize(
    "split, is_known",
    [
        ("train", True),
        ("train[:10%]", True),
        ("translate-train", True),  # Of xquad.
        ("translate", False),
        ("", False),
    ],
)
def test_a_split_is_a_name_or_a_part_of_it(split, is_known):
    info = types.SimpleNamespace(
        splits=("train", "translate-train"), full_name="xquad/de/3.0.0"
    )
    builder = types.SimpleNamespace(info=info)
    if is_known:
        named_datasets.check_split(builder, split)
        return
    with pytest.raises(ValueError, match="--tfds_name=xquad/de has no split"):
        named_datasets.check_split(builder, split)
