"""What we write, loaded by transformers and sentence-transformers."""

import importlib.util
import os
import subprocess

CHECK = "tests/checkpoints/foreign/check_hugging_face.py"


def test_every_kind_of_model_is_the_same_there(
    tmp_path, transformers_python, project_root
):
    spec = importlib.util.spec_from_file_location("check", project_root / CHECK)
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    check.write(tmp_path)
    done = subprocess.run(
        [transformers_python, project_root / CHECK, "check", tmp_path],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    lines = done.stdout.splitlines()
    assert len(lines) == len(check.MODELS) + 1  # The last has added words.
    assert all(line.endswith("  ok") for line in lines)
