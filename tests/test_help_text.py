import dataclasses
import re
import shlex

import pytest

from bert_tf import command_line
from bert_tf import help_text
from bert_tf import options as options_module
from bert_tf import subcommands


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceOptions(options_module.Options):
    flag_group = "devices"

    device: str = options_module.option(
        "auto", help="Where to run.", choices=("auto", "cpu", "gpu")
    )
    dry_run: bool = options_module.option(False, help="Stop.", group="advanced")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedOptions(DeviceOptions):
    flag_group = "training"

    output_dir: str = options_module.option(
        help="Folder.", group="what to do and on which data"
    )
    do_train: bool = options_module.option(
        False, help="Train.", group="what to do and on which data"
    )
    learning_rate: float = options_module.option(5e-5, help="Peak rate.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackOptions(SharedOptions):
    """Packs text into rows.

    A second paragraph, which is wrapped because it is longer than a line of a terminal
    of the usual width.

        pack   an indented line stays as it is
    """

    input_file: tuple[str, ...] = options_module.option((), help="Text files.")
    vocab_file: str = options_module.option(help="Vocabulary.")
    phase: tuple[str, ...] = options_module.option((), help="Parts.", repeated=True)
    layers: tuple[int, ...] = options_module.option((-1, -2), help="Layers.")


EXPECTED = """\
Packs text into rows.

A second paragraph, which is wrapped because it is longer than a line of a
terminal of the usual width.

    pack   an indented line stays as it is

Usage: pack --vocab_file=FILE --output_dir=FOLDER [--flag=value ...]

What to do and on which data:
  --vocab_file=FILE
        Vocabulary. [required]
  --output_dir=FOLDER
        Folder. [required]
  --input_file=FILE,...
        Text files.
  --phase=TEXT
        Parts. [repeatable]
  --layers=INT,...
        Layers. [default: -1,-2]
  --do_train=true|false
        Train. [default: false]

Training:
  --learning_rate=NUMBER
        Peak rate. [default: 5e-05]

Devices:
  --device=auto|cpu|gpu
        Where to run. [default: auto]

Advanced:
  --dry_run=true|false
        Stop. [default: false]
  --flagfile=FILE
        Read more flags from this file, one per line, or from a recipe of this
        package with recipe:NAME. Flags that follow on the command line take
        precedence.
  --traceback
        Show the Python traceback if the tool fails.
"""


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_flags_are_grouped_required_first_then_the_tools_own_then_shared_ones():
    shown = help_text.tool("pack", PackOptions)
    assert shown.startswith(EXPECTED)
    assert "Exit codes: 0 success" in shown


@pytest.mark.parametrize("columns, width", [("30", 50), ("64", 64), ("200", 100)])
def test_lines_fit_the_terminal(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    lines = help_text.tool("pack", PackOptions).splitlines()
    longest = max(len(line) for line in lines if not line.startswith(("  ", "Usage")))
    assert width - 20 < longest <= width


def test_choices_that_are_too_long_for_the_flags_line_are_part_of_its_text():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class LayerOptions(options_module.Options):
        """Chooses."""

        layer: str = options_module.option(
            "a" * 40, choices=("a" * 40, "b" * 40), help="Which."
        )

    shown = help_text.tool("pick", LayerOptions)
    assert "  --layer=TEXT\n        Which. One of: " + "a" * 40 in shown


@pytest.mark.parametrize("subcommand", subcommands.SUBCOMMANDS, ids=lambda s: s.name)
def test_examples_come_first_and_every_example_parses(subcommand, options_of_tool):
    options_class = options_of_tool(subcommand.tool)
    typed = f"bert_tf {subcommand.name}"
    first = help_text.tool(typed, options_class).split("\n\n")[0]
    heading, _, shown = first.partition("\n")
    assert heading in ("Example:", "Examples:")
    commands = shown.replace("\\\n", " ").splitlines()
    assert len(commands) == len(subcommand.examples) > 0
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == typed.split()
        seen = []
        code = command_line.run(
            typed, options_class, lambda record, _, s=seen: s.append(record), words[2:]
        )
        assert (code, len(seen)) == (0, 1)


@pytest.mark.parametrize(
    "typed, other",
    [
        ("bert_tf plot", "plot_run"),
        ("bert_tf plot_run", "plot_run"),
        ("plot_run", "bert_tf plot"),
    ],
)
def test_help_says_what_else_the_tool_is_called(typed, other, options_of_tool):
    shown = help_text.tool(typed, options_of_tool("plot_run"))
    assert f"Usage: {typed} --run_dir=FOLDER,..." in shown
    assert f"\nSame as: {other}\n" in shown


@pytest.mark.parametrize("subcommand", subcommands.SUBCOMMANDS, ids=lambda s: s.name)
def test_help_names_every_flag_once(subcommand, options_of_tool):
    options_class = options_of_tool(subcommand.tool)
    shown = help_text.tool(subcommand.tool, options_class)
    listed = re.findall(r"^  --(\w+)", shown, re.M)
    declared = [d.name for d in options_module.declarations(options_class)]
    assert sorted(listed) == sorted([*declared, "flagfile", "traceback"])
    assert max(len(line) for line in shown.splitlines()) <= 80
