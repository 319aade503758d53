"""What we write, loaded by transformers and sentence-transformers."""

import importlib.util
import json
import os
import subprocess

import pytest

CHECK = "tests/checkpoints/foreign/check_hugging_face.py"


@pytest.fixture(scope="module")
def written(tmp_path_factory, project_root):
    """Folder of a model of every kind, and what each computes."""
    folder = tmp_path_factory.mktemp("written")
    spec = importlib.util.spec_from_file_location("check", project_root / CHECK)
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    check.write(folder)
    return folder


@pytest.fixture
def checked(transformers_python, project_root):
    """Runs the check of a folder in the environment that has transformers."""

    def run(folder):
        return subprocess.run(
            [transformers_python, project_root / CHECK, "check", folder],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            env={**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
        )

    return run


def test_every_kind_of_model_is_the_same_there(written, checked):
    done = checked(written)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    lines = done.stdout.splitlines()
    assert len(lines) == 9
    assert all(line.endswith("  ok") for line in lines)


def test_the_check_sees_another_activation_and_a_stranger_among_the_weights(
    written, checked, change, tmp_path
):
    for name in ("encoder", "classification"):
        for path in (written / f"{name}.npz", *(written / name).rglob("*.*")):
            copy = tmp_path / path.relative_to(written)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    change(tmp_path / "encoder" / "config.json", hidden_act="gelu_new")
    config = tmp_path / "classification" / "config.json"
    change(config, num_hidden_layers=1)
    assert json.loads(config.read_text())["num_hidden_layers"] == 1
    done = checked(tmp_path)
    assert done.returncode == 2
    assert "last_hidden_state differs by" in done.stdout
    assert "unexpected_keys: ['bert.encoder.layer.1." in done.stdout
