"""The layout of the package: allowed imports, lengths of functions, and so on.

The tests read the source and import nothing, so they also run without TensorFlow.
"""

import ast
import collections
import pathlib
import re
import sys

import pytest

from tests import budgets

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_BODY_LINES = 60
MAX_MODULE_LINES = 450
MAX_POSITIONAL = 5

# What any module may import, and what only tools may.
LEAVES = {"files", "json_values", "locks", "machine", "options", "progress"}
TASKS = {path.parent.name for path in ROOT.glob("bert_tf/tasks/*/__init__.py")}
assert "classification" in TASKS
LIBRARY = {
    "tokenization": set(),
    "modeling": set(),
    "optimization": set(),
    "data": {"tokenization"},
    "checkpoints": {"modeling", "tokenization"},
    "training": {"optimization", "checkpoints"},
}
TASK_NAMES = {f"tasks.{task}" for task in TASKS}
MAY_IMPORT = {
    "__init__": set(),
    "machine": set(),
    "file_errors": set(),
    "files": {"file_errors", "json_values"},
    "json_values": set(),
    "locks": set(),
    "options": set(),
    "progress": set(),
    # Its table names functions, "module:name", which only `command_line` loads.
    "subcommands": set(),
    "command_line": {"recipe", "subcommands"},
    # Settings of --recipe=auto.
    "recipe": {"checkpoints", "data", "modeling", "training"},
    "__main__": {"command_line"},
    **LIBRARY,
    "preprocessing": {"tokenization", "data", "modeling", "checkpoints"},
    "pretraining_data": {"tokenization", "data"},
    # Its predictor has the base of all predictors.
    "pretraining": {*LIBRARY, "pretraining_data", "fine_tuning"},
    "fine_tuning": set(LIBRARY),
    "tasks": set(),
    **{task: {*LIBRARY, "fine_tuning"} for task in TASK_NAMES},
    "serving": {
        *("tokenization", "data", "modeling", "checkpoints", "fine_tuning"),
        "pretraining",
    },
    # Runs each task, and loads its predictor.
    "fine_tune": {"recipe", "serving", *LIBRARY, "fine_tuning", *TASK_NAMES},
    # The demo starts the tools as processes.
    "demo": {"notebook"},
    "notebook": set(),  # What notebooks share.
    # A stage before any task: raw text to the sentences that data/corpus.py reads.
    "preparation": {"data", "file_errors"},
}
CONSTRUCTORS = {"__init__", "__call__"}
BACKEND_FREE = ("modeling/",)
ONLY_HERE = {
    "apache_beam": "bert_tf/data/parallel.py",
    "sentencex": "bert_tf/preparation/documents.py",
    "mwparserfromhell": "bert_tf/preparation/wikitext.py",
    "absl.flags": "bert_tf/command_line.py",
    "absl.app": "bert_tf/command_line.py",
    "tensorflow_text": "bert_tf/tokenization/in_graph.py",
    "keras_hub": "bert_tf/checkpoints/keras_hub.py",
}
VAGUE_NAME = re.compile(r"(^|_)(utils?|common|helpers?|misc|managers?|handlers?)(_|$)")
# The release's DataProcessor, and those derived from it, are a term of the field.
VAGUE_CLASS = re.compile(r"(Manager|Handler)$")
ALLOWED_CLASSES = {"_LogHandler"}  # The standard library's: a logging.Handler.
# A declaration on every line of a record reads better without its module.
ALLOWED_NAMES = {
    "bert_tf.options:option",
    "bert_tf.options:OptionError",
}
ALLOWED_NAMES |= {
    "bert_tf.preparation.options:PrepareCorpusOptions",
    "bert_tf.serving.server_model:Job",
    "bert_tf.serving.server_model:ServedModel",
}

# What the project may grow to. Lower a number when the project gets smaller; never
# raise one. `python tests/budgets.py` prints today's numbers.
LIMITS = {
    "lines of bert_tf and tools": 50_000,
    "modules in the closure of the core tools": 150,
    "lines in the closure of the core tools": 32_000,
    "lines of the encoder": 690,
    "files in a task folder": 7,
    "files that name a task outside its folder": 2,
    "flags of run_classifier": 45,
    "flags of all records of options": 204,
    "lines of tests": 36_000,
    "lines of benchmarks": 3_723,
    "lines of RESULTS.md": 380,
    "lines of CHANGELOG.md": 85,
}


def violations(root):
    """Returns a sentence for each breach of the layout below a folder."""
    found = []
    paths = [*(root / "bert_tf").rglob("*.py"), *(root / "tools").glob("*.py")]
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        imported = _imported(tree, root)
        checks = [
            _wrong_imports(name, imported),
            _backend_imports(name, imported),
            _imports_of_one_module(name, imported),
            _sizes(name, text, tree),
            _names(name, tree),
        ]
        found += [f"{name}: {breach}" for check in checks for breach in check]
    return [
        *found,
        *_missing_inits(root, paths),
        *_second_names(root, paths),
        *_import_circles(root, paths),
    ]


def _imported(tree, root):
    """Returns every imported module, "from a import b" as a.b where that is one."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [
                _module_name(f"{'.' * node.level}{node.module or ''}", alias.name, root)
                for alias in node.names
            ]
        elif isinstance(node, ast.Constant) and _names_module(node.value, root):
            names.append(node.value)
    return names


def _names_module(value, root):
    """Returns whether a string is the name of a module, to be imported by it."""
    if not isinstance(value, str) or not re.fullmatch(r"bert_tf(\.\w+)+", value):
        return False
    path = root / value.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def _module_name(module, name, root):
    if not module.startswith("bert_tf") or module.startswith("bert_tf.tools"):
        return f"{module}.{name}"
    path = root / f"{module}.{name}".replace(".", "/")
    is_module = path.is_dir() or path.with_suffix(".py").exists()
    return f"{module}.{name}" if is_module else f"{module}:{name}"


def _wrong_imports(name, imported):
    if name == "bert_tf/__init__.py":
        # The package's entry point names every public name and its module.
        return
    for target in imported:
        if ":" in target and target not in ALLOWED_NAMES:
            yield f"imports a name, not a module: {target.replace(':', '.')}"
    parts = name.removesuffix(".py").split("/")
    own = _row(parts)
    for target in imported:
        others = target.split(":")[0].split(".")
        if others[0] == "tools" or others[:2] == ["bert_tf", "tools"]:
            yield f"imports the tool {target}"
        elif parts[0] == "bert_tf" and others[0] == "bert_tf":
            allowed = MAY_IMPORT.get(own)
            if allowed is None:
                yield "is in no row of the import table"
            elif len(others) > 1 and _row(others) not in {own, *LEAVES, *allowed}:
                yield f"{own} may not import {target}"


def _row(parts):
    """Returns the row of the import table that the parts of a module's name are in."""
    if parts[1] == "tasks" and len(parts) > 3:
        return f"tasks.{parts[2]}"
    return parts[1]


def _backend_imports(name, imported):
    if not name.removeprefix("bert_tf/").startswith(BACKEND_FREE):
        return
    for target in imported:
        top = target.split(".")[0]
        # NumPy is for typed constants: it is not a backend, and Keras itself needs it.
        known = top in ("keras", "numpy", "bert_tf") or top in sys.stdlib_module_names
        if not known:
            yield f"may import only keras and bert_tf.modeling, not {target}"


def _imports_of_one_module(name, imported):
    for target in imported:
        for module, owner in ONLY_HERE.items():
            if target.startswith(module) and name != owner:
                yield f"only {owner} may import {module}"


def _sizes(name, text, tree):
    num_lines = len(text.splitlines())
    if num_lines > MAX_MODULE_LINES:
        yield f"{num_lines} lines, at most {MAX_MODULE_LINES}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = _body_lines(node)
        if length > MAX_BODY_LINES:
            yield f"{node.name} has {length} lines, at most {MAX_BODY_LINES}"
        arguments = [a.arg for a in [*node.args.posonlyargs, *node.args.args]]
        arguments = [a for a in arguments if a not in ("self", "cls")]
        if len(arguments) > MAX_POSITIONAL:
            yield f"{node.name} takes {len(arguments)} positional arguments"


def _body_lines(function):
    """Returns the lines of a body, its docstring left out."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def _names(name, tree):
    for part in name.removesuffix(".py").split("/"):
        if VAGUE_NAME.search(part):
            yield f"{part} says nothing of what is in it"
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name in ALLOWED_CLASSES:
            continue
        if VAGUE_CLASS.search(node.name):
            yield f"class {node.name} says nothing of what it does"


def _missing_inits(root, paths):
    for folder in sorted({path.parent for path in paths}):
        if not (folder / "__init__.py").exists():
            yield f"{folder.relative_to(root).as_posix()}: has no __init__.py"


def _second_names(root, paths):
    """Yields every module that is imported under more than one name."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for path in sorted(paths):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            for alias in node.names:
                module = _module_name(node.module, alias.name, root)
                if module.startswith("bert_tf.") and ":" not in module:
                    name = path.relative_to(root).as_posix()
                    found[module][alias.asname or alias.name].append(name)
    for module, users in sorted(found.items()):
        if len(users) > 1:
            names = "; ".join(f"{name} in {where[0]}" for name, where in users.items())
            yield f"{module} is imported under {len(users)} names: {names}"


def _import_circles(root, paths):
    """Yields every set of modules that import one another, wherever they do it."""
    imported = {}
    for path in sorted(paths):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        name = name.removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported[name] = {target.split(":")[0] for target in _imported(tree, root)}
    # The package's entry point names every module, to load it lazily.
    imported.pop("bert_tf", None)
    reachable = {name: _reachable(name, imported) for name in imported}
    circles = {
        tuple(sorted(other for other in found if name in reachable[other]))
        for name, found in reachable.items()
        if name in found
    }
    for circle in sorted(circles):
        yield f"{', '.join(circle)} import one another"


def _reachable(name, imported):
    """Returns the modules that a module imports, and those that they import."""
    found, left = set(), [name]
    while left:
        new = (imported[left.pop()] & imported.keys()) - found
        found |= new
        left += new
    return found


def unannotated(root):
    """Returns a sentence for each public function that lacks annotations, by package.

    Constructors count as public. ruff's rules D1 see to the docstrings.
    """
    found = collections.defaultdict(list)
    for path in sorted([*(root / "bert_tf").rglob("*.py"), *root.glob("tools/*.py")]):
        parts = path.relative_to(root).with_suffix("").parts
        package = "tools" if parts[0] == "tools" else _row(parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, function, is_bound in _public_functions(tree):
            missing = _without_annotation(function, is_bound)
            if missing:
                where = path.relative_to(root).as_posix()
                sentence = f"{where}: {name} does not annotate {', '.join(missing)}"
                found[package].append(sentence)
    return dict(found)


def _public_functions(tree):
    """Yields name, node and whether its first argument is `self` or `cls`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, node, False
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        for method in node.body:
            if not isinstance(method, ast.FunctionDef):
                continue
            decorators = {ast.unparse(one) for one in method.decorator_list}
            if not method.name.startswith("_") or method.name in CONSTRUCTORS:
                is_bound = "staticmethod" not in decorators
                yield f"{node.name}.{method.name}", method, is_bound


def _without_annotation(function, is_bound):
    given = function.args
    arguments = [*given.posonlyargs, *given.args][is_bound:]
    arguments += [*given.kwonlyargs, *filter(None, [given.vararg, given.kwarg])]
    missing = [one.arg for one in arguments if one.annotation is None]
    if function.returns is None and function.name != "__init__":
        missing.append("the return value")
    return missing


def test_the_project_keeps_its_layout():
    assert violations(ROOT) == []


def test_public_functions_are_annotated():
    assert unannotated(ROOT) == {}


def test_the_project_stays_within_its_limits():
    measured = budgets.measure(ROOT)
    above = {name: size for name, size in measured.items() if size > LIMITS[name]}
    assert above == {}


def _plant(root, **sources):
    for name, source in sources.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        (path.parent / "__init__.py").touch()
    (root / "bert_tf").mkdir(exist_ok=True)
    (root / "bert_tf" / "__init__.py").touch()


_LONG_BODY = "def f():\n" + "    x = 1\n" * 61
_LONG_DOCSTRING = (
    "class C:\n    def f(self, a, b, c, d, e, *, g=1):\n"
    '        """' + "A line.\n" * 70 + '"""\n'
)


ROWS, TOOL = "bert_tf__data__rows", "tools__run_one"


@pytest.mark.parametrize(
    "module, source, sentence",
    [
        (
            ROWS,
            "from bert_tf.training import loop",
            "data may not import bert_tf.training.loop",
        ),
        (
            "bert_tf__tasks__retrieval__workflow",
            "import bert_tf.tasks.classification.model",
            "tasks.retrieval may not import bert_tf.tasks.classification",
        ),
        (
            ROWS,
            "X = 'bert_tf.training.loop'",
            "data may not import bert_tf.training.loop",
        ),
        (
            ROWS,
            "def f():\n    from bert_tf import serving",
            "data may not import bert_tf.serving",
        ),
        ("bert_tf__fun__jokes", "from bert_tf import files", "is in no row"),
        (
            ROWS,
            "from bert_tf.files import expand",
            "imports a name, not a module: bert_tf.files.expand",
        ),
        (
            "bert_tf__modeling__bert",
            "import tensorflow as tf",
            "may import only keras and bert_tf.modeling, not tensorflow",
        ),
        (
            "bert_tf__modeling__heads",
            "X = 'bert_tf.data.packing'",
            "modeling may not import bert_tf.data.packing",
        ),
        (
            ROWS,
            "from absl import flags",
            "only bert_tf/command_line.py may import absl.flags",
        ),
        (
            ROWS,
            "def f():\n    import tensorflow_text",
            "only bert_tf/tokenization/in_graph.py may import tensorflow_text",
        ),
        (TOOL, "from tools import run_two", "imports the tool tools.run_two"),
        (
            TOOL,
            "from bert_tf.tools import run_two",
            "imports the tool bert_tf.tools.run_two",
        ),
        (ROWS, "x = 1\n" * 451, "451 lines, at most 450"),
        (ROWS, _LONG_BODY, "f has 61 lines, at most 60"),
        (ROWS, "def f(a, b, c, d, e, g): pass", "f takes 6 positional arguments"),
        ("bert_tf__data__text_utils", "", "text_utils says nothing"),
        (ROWS, "class RowManager: pass", "class RowManager says"),
    ],
)
def test_a_breach_is_reported(tmp_path, module, source, sentence):
    names = ("tools__run_two", "bert_tf__data__packing", "bert_tf__training__loop")
    others = dict.fromkeys((*names, "bert_tf__files", "bert_tf__serving__runs"), "")
    _plant(tmp_path, **others, **{module: source})
    [found] = violations(tmp_path)
    assert found.startswith(f"{module.replace('__', '/')}.py: {sentence}"), found


def test_what_is_allowed_is_not_reported(tmp_path):
    _plant(
        tmp_path,
        bert_tf__files="import os",
        bert_tf__training__loop="from bert_tf.checkpoints import native\nimport absl",
        bert_tf__checkpoints__native="from bert_tf import files",
        bert_tf__modeling__bert="import keras\nimport math",
        bert_tf__tasks__classification__model="from bert_tf.modeling import bert",
        tools__run_one="from bert_tf import command_line\nprint(1)",
        bert_tf__command_line="from absl import flags",
        bert_tf__data__rows=_LONG_DOCSTRING,
    )
    assert violations(tmp_path) == []


def test_an_import_circle_is_reported_wherever_its_imports_are(tmp_path):
    _plant(
        tmp_path,
        bert_tf__data__rows="from bert_tf.data import cells",
        bert_tf__data__cells="def f():\n    from bert_tf.data import tables",
        bert_tf__data__tables="X = 'bert_tf.data.rows'",
        bert_tf__data__reader="from bert_tf.data import rows",
    )
    assert violations(tmp_path) == [
        "bert_tf.data.cells, bert_tf.data.rows, bert_tf.data.tables import one another"
    ]


def test_a_folder_without_init_is_reported(tmp_path):
    _plant(tmp_path, bert_tf__data__rows="")
    (tmp_path / "bert_tf" / "data" / "__init__.py").unlink()
    assert violations(tmp_path) == ["bert_tf/data: has no __init__.py"]
