"""Writes the reference pages: one per tool, and one of the public Python names.

The options records that make the flags also make these pages. `conf.py` calls `write`
at the start of every build; the pages are not in version control.
"""

import importlib
import inspect
import pathlib
import pkgutil

import bert_tf
from bert_tf import options as options_module
from bert_tf import subcommands

ROOT = pathlib.Path(__file__).parent.parent
PYTHON_GROUPS = {
    "Models": ("Bert",),
    "Text": ("BasicTok", "FullTok", "InGraph", "TextPre", "Vocab", "Wordpiece", "pack"),
    "Checkpoints": ("load", "from_pretrained"),
    "Predictions without training": ("embed", "fill_masks", "score_texts"),
}


def write(folder: pathlib.Path) -> None:
    """Writes `tools/*.md` and `python.md` into a folder."""
    tools = folder / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    for subcommand in subcommands.SUBCOMMANDS:
        _write(tools / f"{subcommand.tool}.md", tool_page(subcommand))
    _write(tools / "index.md", tools_index())
    _write(folder / "python.md", python_page())


def _write(path: pathlib.Path, text: str) -> None:
    # Sphinx reads a page again if its file is new.
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def tools_index() -> str:
    """Returns the page that lists all tools by stage."""
    lines = [
        "# Tools",
        "",
        "`bert_tf --help` lists all tools, and `bert_tf SUBCOMMAND --help` explains "
        "one: an example first, then its flags in groups. Each tool is also a command "
        "under the release's name. In a checkout, `python tools/NAME.py` does the "
        "same, and `python -m bert_tf` works too.",
        "",
        "With `--dry_run`, a training tool takes a few steps, prints the number of "
        "parameters and steps, the memory and the expected time, and saves nothing.",
        "",
        "| stage | `bert_tf` | command | purpose |",
        "|---|---|---|---|",
    ]
    for stage, members in subcommands.STAGES.items():
        lines += [
            f"| {stage} | `{s.name}` | [`{s.tool}`]({s.tool}.md) | {s.summary} |"
            for s in members
        ]
    names = [subcommand.tool for subcommand in subcommands.SUBCOMMANDS]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *names, "```", ""])


def tool_page(subcommand: subcommands.Subcommand) -> str:
    """Returns the page of a tool: an example, what it does, and its flags by group."""
    options_class = pkgutil.resolve_name(subcommand.options)
    lines = [f"# {subcommand.tool}", "", f"{subcommand.summary}.", ""]
    lines += [f"Also called `bert_tf {subcommand.name}`.", "", "```bash"]
    command = f"{subcommand.tool} {subcommand.example}"
    lines += [command.replace(" --", " \\\n    --"), "```", ""]
    paragraphs = inspect.cleandoc(options_class.__doc__ or "").split("\n\n")
    for paragraph in paragraphs:
        lines += [_paragraph(paragraph), ""]
    declared = subcommands.ordered(options_class)
    for group in options_module.GROUPS:
        members = [d for d in declared if d.group == group]
        if members:
            lines += [f"## {group[0].upper()}{group[1:]}", ""]
        for declaration in members:
            flag = subcommands.flag_with_value(declaration)
            notes = subcommands.notes_on(declaration).strip("[]")
            ending = f" *({notes})*" if notes else ""
            lines += [f"`{flag}`", f": {_escaped(declaration.help)}{ending}", ""]
    return "\n".join(lines)


def _paragraph(text: str) -> str:
    """Returns a paragraph of a docstring; an indented one is shown as it is."""
    if text.startswith(" "):
        return f"```text\n{inspect.cleandoc(text)}\n```"
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    """Returns text in which Markdown leaves *, <, [ and _ alone, outside of code."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        for sign in "\\*<[_|$":
            parts[index] = parts[index].replace(sign, f"\\{sign}")
    return "`".join(parts)


def python_page() -> str:
    """Returns the page of the names that `bert_tf` exports, from their docstrings."""
    lines = ["# Python", "", "The names of `import bert_tf`, by purpose.", ""]
    left = [name for name in bert_tf.__all__ if not name.startswith("_")]
    for title, prefixes in PYTHON_GROUPS.items():
        members = [name for name in left if name.startswith(prefixes)]
        left = [name for name in left if name not in members]
        lines += _documented(title, [f"bert_tf.{name}" for name in members])
    functions = [f"bert_tf.fine_tune.{name}" for name in bert_tf.fine_tune.__all__]
    lines += _documented("Fine-tuning in one call", functions)
    lines += _documented("Other", [f"bert_tf.{name}" for name in left])
    return "\n".join(lines)


def _documented(title: str, names: list[str]) -> list[str]:
    lines = [f"## {title}", ""]
    for name in names:
        module, _, short = name.rpartition(".")
        value = getattr(importlib.import_module(module), short)
        kind = "autoclass" if inspect.isclass(value) else "autofunction"
        # The docstrings of Keras's inherited methods are Keras's.
        lines += ["```{eval-rst}", f".. {kind}:: {name}", "```", ""]
    return lines
