"""Imports within a context, and without garbage collection."""

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import subprocess
import sys

import pytest
import wrapt

from bert_tf import import_hooks
from bert_tf import imports


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package that records whether the collector ran, and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "large_package", raising=False)
    (tmp_path / "large_package.py").write_text(
        "import gc\nwas_collecting = gc.isenabled()\n"
    )
    importlib.invalidate_caches()
    return "large_package"


def output_of(program, *folders):
    """Returns what a program prints that imports from these folders."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, folders)),
            "KERAS_BACKEND": "tensorflow",
        },
        timeout=500,
        check=True,
    )
    return done.stdout


def test_several_contexts_surround_one_import(package):
    order = []

    @contextlib.contextmanager
    def first():
        order.append("first")
        yield
        order.append("end of first")

    @contextlib.contextmanager
    def second():
        order.append("second")
        yield
        order.append("end of second")

    with (
        import_hooks.importing_within(package, first),
        import_hooks.importing_within(package, second),
    ):
        importlib.import_module(package)
        importlib.import_module(package)
    assert order == ["second", "first", "end of first", "end of second"]


@pytest.mark.parametrize("is_in_front", [False, True])
def test_hooks_of_other_libraries_still_run(package, monkeypatch, is_in_front):
    """Those of wrapt, which tracing tools use, replace the loader by a proxy."""
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    order = []

    @contextlib.contextmanager
    def context():
        order.append("start")
        yield
        order.append("end")

    wrapt.register_post_import_hook(
        lambda module: order.append(module.__name__), package
    )
    with import_hooks.importing_within(package, context):
        if is_in_front:
            sys.meta_path.insert(0, wrapt.importer.ImportHookFinder())
        module = importlib.import_module(package)
    assert sorted(order) == ["end", package, "start"]
    assert module.__spec__.loader.get_filename(package) == module.__file__


def test_a_package_that_is_missing_is_reported_as_usual():
    with import_hooks.importing_within("missing_package", contextlib.nullcontext):
        with pytest.raises(ModuleNotFoundError, match="missing_package"):
            importlib.import_module("missing_package")


def test_garbage_collection_is_off_only_during_the_import(package):
    frozen = gc.get_freeze_count()
    try:
        with import_hooks.importing_within(package, imports.without_garbage_collection):
            assert gc.isenabled()
            module = importlib.import_module(package)
        assert not module.was_collecting
        assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()


def test_garbage_is_collected_less_often_only_within_the_block():
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="a mistake"):
        with imports.rare_garbage_collection():
            assert gc.get_threshold()[0] > before[0]
            assert gc.get_threshold()[2] > before[2]
            raise ValueError("a mistake")
    assert gc.get_threshold() == before


def test_a_collector_that_was_off_stays_off(package):
    gc.disable()
    try:
        with import_hooks.importing_within(package, imports.without_garbage_collection):
            importlib.import_module(package)
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.mark.parametrize("is_quick", [False, True])
def test_the_end_of_the_process_skips_the_last_collection(
    package, tmp_path, project_root, is_quick
):
    program = (
        "import contextlib, gc\n"
        "from bert_tf import import_hooks, imports\n"
        "gc.set_threshold(100_000)\n"
        "class Cycle:\n"
        "    def __init__(self): self.me = self\n"
        "    def __del__(self): print('collected')\n"
        "without = imports.without_garbage_collection\n"
        f"context = without if {is_quick} else contextlib.nullcontext\n"
        f"with import_hooks.importing_within({package!r}, context):\n"
        f"    import {package}\n"
        "Cycle()\n"
    )
    output = output_of(program, project_root, tmp_path)
    assert output == ("" if is_quick else "collected\n")


@pytest.fixture(scope="module")
def facts(project_root):
    """What a process finds that imports TensorFlow and Keras as tools do."""
    program = (
        "import gc, json, sys\n"
        "from bert_tf import imports\n"
        "runs = []\n"
        "gc.callbacks.append(lambda phase, info: runs.append(phase))\n"
        "with imports.quick_and_quiet():\n"
        "    import keras\n"
        "    import tensorflow\n"
        "    facts = {\n"
        "        'num_collections': len(runs),\n"
        "        'num_frozen': gc.get_freeze_count(),\n"
        "        'collects': gc.isenabled(),\n"
        "        'classes': list(keras.saving.get_custom_objects()),\n"
        "    }\n"
        "    import bert_tf.fine_tuning.workflow\n"
        "    import bert_tf.pretraining.workflow\n"
        "    facts['imported'] = list(sys.modules)\n"
        "    import pandas\n"
        "    facts['columns'] = list(pandas.DataFrame({'a': [1]}))\n"
        "print(json.dumps(facts))\n"
    )
    return json.loads(output_of(program, project_root))


def test_tensorflow_and_keras_are_imported_without_collection(facts):
    assert facts["collects"]
    assert facts["num_collections"] < 100  # Otherwise 5,000.
    assert facts["num_frozen"] > 100_000
    assert "bert_tf>BertModel" in facts["classes"]


def test_tools_do_not_import_packages_for_unused_features(facts):
    hidden = imports._HIDDEN_PACKAGES
    assert all(importlib.util.find_spec(name) for name in hidden)  # Are installed.
    assert not set(hidden) & set(facts["imported"])
    assert facts["columns"] == ["a"]  # They can be imported later.


def importer(tmp_path, package):
    """Writes a module that tries to import the package; returns the module's name."""
    (tmp_path / "careful_module.py").write_text(
        f"try:\n    import {package}\nexcept ModuleNotFoundError as error:\n"
        f"    {package} = None\n    assert error.name == {package!r}\n"
    )
    importlib.invalidate_caches()
    sys.modules.pop("careful_module", None)
    return "careful_module"


def test_a_package_is_hidden_from_some_modules_only(package, tmp_path):
    name = importer(tmp_path, package)
    with import_hooks.without_packages([package], ["careful_module"]):
        assert importlib.import_module(name).large_package is None
        module = importlib.import_module(package)  # This test may import it.
        assert importlib.reload(sys.modules[name]).large_package is module


def test_a_hidden_package_is_visible_afterwards(package, tmp_path):
    name = importer(tmp_path, package)
    with import_hooks.without_packages([package], ["careful_module"]):
        assert importlib.import_module(name).large_package is None
    assert importlib.reload(sys.modules[name]).large_package.__name__ == package


def test_hooks_of_other_libraries_import_hidden_packages(
    package, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    (tmp_path / "hidden_module.py").write_text("")
    name = importer(tmp_path, "hidden_module")
    imported = []
    wrapt.register_post_import_hook(
        lambda module: imported.append(importlib.import_module("hidden_module")), name
    )
    sys.meta_path.insert(0, wrapt.importer.ImportHookFinder())

    def context():
        return import_hooks.without_packages(["hidden_module"], ["careful_module"])

    with import_hooks.importing_within(name, context):
        assert importlib.import_module(name).hidden_module is None
    assert [module.__name__ for module in imported] == ["hidden_module"]


def test_other_threads_see_all_finders_while_one_is_removed(package):
    before = sys.meta_path
    with import_hooks.importing_within(package, contextlib.nullcontext):
        within = sys.meta_path
        copy = within[:]
    assert within == copy  # An iteration over it would not skip one.
    assert sys.meta_path == before
