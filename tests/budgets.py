"""Measures the size of the project: `python tests/budgets.py` prints the table.

`tests/test_layout.py` compares the numbers with their limits. It reads the
source and imports nothing of it.
"""

import ast
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE_TOOLS = (
    "create_pretraining_data",
    "run_pretraining",
    "run_classifier",
    "export_saved_model",
)
CORE_TASKS = ("classification", "pretraining")  # What these tools train and export.
# `pooling` is not among them: it makes vectors of texts from the encoder's outputs.
ENCODER = ("config", "embeddings", "bert")


def measure(root):
    """Returns the measured size by name.

    The import closure of the core tools counts every import statement, also those in
    functions, and what the table of tools names, but no other names in strings.
    """
    sources = _sources(root)
    tools = table(root)
    starts = [f"tools.{name}" for name in CORE_TOOLS]
    starts += [name.split(":")[0] for tool in CORE_TOOLS for name in tools[tool]]
    starts += [module for task in CORE_TASKS for module in _modules_of(root, task)]
    closure = _closure(sources, starts)
    folders = [path for path in (root / "bert_tf/tasks").iterdir() if path.is_dir()]
    folders = [path for path in folders if any(path.glob("*.py"))]
    return {
        "lines of bert_tf and tools": sum(map(_lines, sources.values())),
        "modules in the closure of the core tools": len(closure),
        "lines in the closure of the core tools": sum(
            _lines(sources[name]) for name in closure
        ),
        "lines of the encoder": sum(
            _lines(path)
            for path in (root / "bert_tf/modeling").glob("*.py")
            if path.stem in ENCODER
        ),
        "files in a task folder": max(
            len([path for path in folder.glob("*.py") if path.name != "__init__.py"])
            for folder in folders
        ),
        "files that name a task outside its folder": max(
            len(_files_that_name(root, sources, folder.name)) for folder in folders
        ),
        "flags of run_classifier": len(flags(root, "run_classifier")),
        # A flag that several tools inherit counts once.
        "flags of all records of options": sum(
            _is_option(getattr(line, "value", None))
            for node in _classes(root).values()
            for line in node.body
        ),
        "lines of tests": sum(map(_lines, (root / "tests").rglob("*.py"))),
        "lines of benchmarks": sum(map(_lines, (root / "benchmarks").rglob("*.py"))),
        "lines of RESULTS.md": _lines(root / "benchmarks/RESULTS.md"),
        "lines of CHANGELOG.md": _lines(root / "CHANGELOG.md"),
    }


def flags(root, tool):
    """Returns the names of a tool's flags: those of its options record."""
    return _fields(_classes(root), table(root)[tool][0].split(":")[1])


def table(root):
    """Returns {tool: (its options record, its function)}, "module:name" each."""
    text = (root / "bert_tf/subcommands.py").read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    values = [{k.arg: k.value for k in call.keywords} for call in calls]
    fine_tuning = ast.Constant("bert_tf.fine_tuning.run:run")
    return {
        row["tool"].value: (row["options"].value, row.get("work", fine_tuning).value)
        for row in values
        if "tool" in row
    }


def _modules_of(root, task):
    """Returns the modules that the table of tasks names for a task."""
    text = (root / "bert_tf/fine_tuning/tasks.py").read_text(encoding="utf-8")
    row = re.search(rf'"{task}": Entry\((.*?)\n    \),', text, re.DOTALL)[1]
    return re.findall(r'"(bert_tf[\w.]+):\w+"', row)


def _sources(root):
    paths = [*root.glob("bert_tf/**/*.py"), *root.glob("tools/*.py")]
    names = {}
    for path in sorted(paths):
        parts = path.relative_to(root).with_suffix("").parts
        names[".".join(parts[: len(parts) - (parts[-1] == "__init__")])] = path
    return names


def _lines(path):
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def _closure(sources, names):
    reached, left = set(), list(names)
    while left:
        name = left.pop()
        if name in reached:
            continue
        reached.add(name)
        # The package itself names every public class and imports it on first use.
        if name != "bert_tf":
            left += _imports(sources, name)
    return reached


def _imports(sources, name):
    targets = set()
    for node in ast.walk(ast.parse(sources[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                is_module = f"{node.module}.{alias.name}" in sources
                targets.add(f"{node.module}.{alias.name}" if is_module else node.module)
    parts = [target.split(".") for target in targets if target in sources]
    return {".".join(one[:end]) for one in parts for end in range(1, len(one) + 1)}


def _files_that_name(root, sources, task):
    """Returns the files outside `modeling/` and the task's folder that name a task."""
    folders = (root / "bert_tf/tasks" / task, root / "bert_tf/modeling")
    name = re.compile(rf"tasks[./]{task}\b|tasks import {task}\b|[\"']{task}[\"']")
    return [
        path
        for path in sources.values()
        if not any(folder in path.parents for folder in folders)
        and name.search(path.read_text(encoding="utf-8"))
    ]


@functools.cache
def _classes(root):
    classes = {}
    for path in root.glob("bert_tf/**/*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, node)
    return classes


def _fields(classes, name):
    node = classes.get(name)
    if node is None:
        return set()
    fields = set()
    for base in node.bases:
        fields |= _fields(classes, ast.unparse(base).split(".")[-1])
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and _is_option(line.value):
            fields.add(line.target.id)
    return fields


def _is_option(value):
    if not isinstance(value, ast.Call):
        return False
    return ast.unparse(value.func).split(".")[-1] == "option"


if __name__ == "__main__":
    for key, value in measure(ROOT).items():
        sys.stdout.write(f"{value:>8,}  {key}\n")
