"""Each task works although no other task can be imported."""

import os
import subprocess
import sys

PROGRAM = """
import importlib, pathlib, sys

class OtherTasks:
    def find_spec(self, name, path=None, target=None):
        package = name.split(".")[:3]
        if package[:2] == ["bert_tf", "tasks"] and package[2:] not in ([], [task]):
            raise ModuleNotFoundError(f"{task} imports {name}")

sys.meta_path.insert(0, OtherTasks())
for folder in sorted(pathlib.Path("bert_tf/tasks").glob("*/")):
    task = folder.name
    for loaded in [name for name in sys.modules if name.startswith("bert_tf.tasks")]:
        del sys.modules[loaded]
    files = sorted(folder.glob("*.py"))
    for path in files:
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        importlib.import_module(name)
    if files:
        print(task)
"""


def test_a_task_imports_no_other_task(project_root):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=project_root,
        env={**os.environ, "PYTHONPATH": str(project_root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tasks = {
        "classification",
        "feature_extraction",
        "multiple_choice",
        "question_answering",
        "retrieval",
        "token_classification",
    }
    assert set(done.stdout.split()) == tasks
