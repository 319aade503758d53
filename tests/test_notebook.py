import fnmatch

import pytest

from bert_tf import notebook


def test_a_notebook_keeps_its_files_in_the_given_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("BERT_TF_TINY", raising=False)
    setup = notebook.prepare("retrieval", str(tmp_path))
    assert setup.path("run") == str(tmp_path / "retrieval" / "run")
    assert (tmp_path / "retrieval").is_dir()
    assert (setup.device, setup.dtype) == ("cpu", "float32")
    assert "full form" in setup.last_run_on()


@pytest.mark.parametrize(
    "file, device",
    [
        ("/dev/accel0", "tpu"),  # Up to v4.
        ("/dev/vfio/0", "tpu"),  # v5e and v6e.
        ("/dev/vfio/vfio", "cpu"),  # Any machine with Linux's module vfio.
    ],
)
def test_a_tpu_is_found_by_the_files_of_its_chips(file, device, tmp_path, monkeypatch):
    monkeypatch.setattr(
        notebook.glob, "glob", lambda pattern: fnmatch.filter([file], pattern)
    )
    assert notebook.prepare("retrieval", str(tmp_path)).device == device
