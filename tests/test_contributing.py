"""CONTRIBUTING.md describes the code as it is."""

import pathlib
import re

from tests import test_layout

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def section(title):
    """Returns the text of a section, its subsections included."""
    level, name = title.split(" ", 1)
    pattern = rf"^{level} {re.escape(name)}\n(.*?)(?=^#{{2,{len(level)}}} |\Z)"
    return re.search(pattern, TEXT, re.MULTILINE | re.DOTALL)[1]


SHORT = {"tasks.*": test_layout.TASK_NAMES, "library": set(test_layout.LIBRARY)}


def names_in(text):
    """Returns the names in backticks, those in `SHORT` written out."""
    found = re.findall(r"`([^`]+)`", text)
    return {name for short in found for name in SHORT.get(short, {short})}


IMPORTS = section("## Imports")


def import_table():
    """Returns {module: modules it may import}, as CONTRIBUTING.md has it."""
    rows = re.findall(r"^\| (`.+?) \| (.+?) \|$", IMPORTS, re.MULTILINE)
    return {
        module: names_in(allowed)
        for modules, allowed in rows
        for module in names_in(modules)
    }


def test_the_import_table_is_the_one_that_is_enforced():
    assert import_table() == test_layout.MAY_IMPORT


def test_the_modules_that_all_may_import_are_named():
    sentence = re.search(
        r"^Every module may .+?\.", section("## Imports"), re.MULTILINE
    )
    assert names_in(sentence[0]) == test_layout.LEAVES


def test_the_library_is_what_the_table_says():
    sentence = re.search(
        r"`library` stands for(.+?)\.", section("## Imports"), re.DOTALL
    )
    assert names_in(sentence[1]) == set(test_layout.LIBRARY)


def test_every_package_is_on_the_map():
    tree = section("## The map")
    packages = {path.parent.name for path in ROOT.glob("bert_tf/*/__init__.py")}
    tasks = {path.parent.name for path in ROOT.glob("bert_tf/tasks/*/__init__.py")}
    missing = {name for name in packages | tasks if f" {name}/" not in tree}
    assert not missing


def test_recorded_numbers_are_in_make_test():
    named = r"^def test_\w*(2018|recorded)"
    left_out = r"^(@|pytestmark = )pytest\.mark\.(slow|long)"
    for path in ROOT.glob("tests/**/test_*.py"):
        header, *tests = re.split(r"\n\n\n", path.read_text(encoding="utf-8"))
        tests = [test for test in tests if re.search(named, test, re.MULTILINE)]
        for block in (header, *tests) if tests else ():
            assert not re.search(left_out, block, re.MULTILINE), (path, block)


def test_every_file_that_is_named_exists():
    names = set(re.findall(r"`([\w./-]+/[\w.-]+\.\w+)`", TEXT))
    roots = [ROOT, ROOT / "bert_tf", ROOT / "tests"]
    missing = {
        name for name in names if not any((root / name).exists() for root in roots)
    }
    assert not missing
