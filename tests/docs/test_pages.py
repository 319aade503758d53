"""The pages of docs/ and the README: links, commands, names and messages are real."""

import importlib
import pathlib
import re
import shlex

import pytest
import yaml

from bert_tf import command_line
from bert_tf import subcommands
from bert_tf.serving import export_layout
from bert_tf.serving import options as serving_options

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
GENERATED = ("reference/tools/", "reference/python")
PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted(DOCS.rglob("*.md"))
        if not path.relative_to(DOCS).as_posix().startswith(GENERATED)
    ),
]


def page_id(path):
    return path.relative_to(ROOT).as_posix()


def anchors(text):
    """Returns the anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def full_text(path):
    """Returns the text of a page, and that of the file that it includes."""
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"^```\{include\} (\S+)", text, re.M):
        text += (path.parent / name).read_text(encoding="utf-8")
    return text


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_leads_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        # Workflows are addresses of the repository's site, not files.
        if target.startswith(("http", "../../actions/")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        is_generated = path.is_relative_to(DOCS) and page_id(path)[5:].startswith(
            GENERATED
        )
        assert path.exists() or is_generated, target
        if anchor:
            assert anchor in anchors(full_text(path)), target


def test_every_page_is_in_a_table_of_contents_once():
    listed = ["index"]
    for page in PAGES[1:]:
        folder = page.parent.relative_to(DOCS)
        for body in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S
        ):
            lines = [line for line in body.splitlines() if line and line[0] != ":"]
            for line in lines:
                names = [(folder / line).as_posix()]
                if "*" in line:
                    paths = (DOCS / folder).glob(f"{line}.md")
                    names = [
                        p.relative_to(DOCS).with_suffix("").as_posix() for p in paths
                    ]
                listed += [name for name in names if not name.startswith(GENERATED)]
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in PAGES[1:]}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages


def commands_of(text):
    """Yields (tool, flags) of the commands in the code blocks of a page."""
    for block in re.findall(r"^```(?:bash)?\n(.*?)^```", text, re.M | re.S):
        lines = iter(re.sub(r" ?\\\n( *)", r"\1", block).splitlines())
        for line in lines:
            words = line.removeprefix("$ ").split(" #")[0].split()
            words = words[1:] if words[:1] == ["bert_tf"] else words
            subcommand = words and subcommands.BY_NAME.get(words[0])
            if not subcommand or len(words) < 2 or not words[1].startswith("-"):
                continue
            while line.count("'") % 2:  # A quoted value may have several lines.
                line += " " + next(lines).strip()
            command = shlex.split(line.split(" #")[0].split(" > ")[0])
            flags = command[command.index(words[0]) + 1 :]
            if "..." not in flags:
                yield subcommand.tool, flags


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_command_has_flags_that_exist(page, options_of_tool, capsys):
    for tool, flags in commands_of(full_text(page)):
        if "--help" in flags:
            continue
        code = command_line.run(tool, options_of_tool(tool), lambda _: None, flags)
        assert code == 0, (tool, flags, capsys.readouterr().err)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_python_name_exists(page):
    text = page.read_text()
    if page.name == "moved.md":  # It also names the old paths.
        return
    for name in set(re.findall(r"\bbert_tf(?:\.\w+)+", text)):
        module, parts = importlib.import_module("bert_tf"), name.split(".")[1:]
        # Files such as `bert_tf.egg-info`, and generated text, are not names.
        if parts[0] in ("egg", "tools"):
            continue
        value = module
        for index, part in enumerate(parts):
            if not hasattr(value, part):
                importlib.import_module(".".join(["bert_tf", *parts[: index + 1]]))
            value = getattr(value, part)


def test_the_files_for_tensorflow_serving_can_be_read():
    text = (DOCS / "serving.md").read_text()
    for block in re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S):
        assert all(yaml.safe_load_all(block))
    # The server refuses larger requests.
    rows = int(re.search(r"^max_batch_size \{ value: (\d+) \}", text, re.M)[1])
    assert rows >= max(serving_options.QUERIES_PER_CALL, *export_layout.BATCH_SIZES)


def test_every_claim_of_equality_names_a_test_with_its_tolerance():
    rows = re.findall(
        r"^\| .+? \| (.+?) \| `(tests/.+?)` \|$", (DOCS / "parity.md").read_text(), re.M
    )
    assert len(rows) > 15
    for tolerance, name in rows:
        source = (ROOT / name).read_text()
        for number in re.findall(r"\d+e-\d+", tolerance):
            assert number in source, (name, number)


def test_every_dependency_is_in_the_table():
    text = (DOCS / "dependencies.md").read_text()
    listed = set(re.findall(r"^\| ([\w-]+) \|", text, re.M))
    block = (ROOT / "setup.py").read_text().partition("install_requires")[2]
    required = re.findall(r'^        "([\w-]+)[>=<]', block.partition("]")[0], re.M)
    assert len(required) > 8
    assert {name.replace("_", "-") for name in required} <= listed
