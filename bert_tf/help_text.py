"""What `--help` prints, of a tool and of `bert_tf` itself.

A tool's help has an example command first, then what the tool does, then its flags by
group, the tool's own before those that it shares with other tools.
"""

import inspect
import itertools
import re
import shlex
import shutil
import textwrap
from collections.abc import Iterable

from bert_tf import options as options_module
from bert_tf import subcommands

_MIN_WIDTH = 50
# Different records declare these flags, but users read them together, in this order.
_ACTIONS = ("do_train", "do_eval", "do_predict", "dry_run")
_MAX_WIDTH = 100  # Longer lines are hard to read.
_FLAG_INDENT = "  "
_TEXT_INDENT = "        "
_KINDS = {str: "TEXT", int: "INT", float: "NUMBER"}
_BOOLEAN = "true|false"
_UNBROKEN = "\0"  # A space at which lines are not broken.
# Flags of every tool that no options record declares.
_ADVANCED = (
    (
        "--flagfile=FILE",
        "Read more flags from this file, one per line, or from a recipe of this "
        "package with recipe:NAME. Flags that follow on the command line take "
        "precedence.",
    ),
    ("--traceback", "Show the Python traceback if the tool fails."),
)
_EXIT_CODES = (
    "Exit codes: 0 success, 1 the job failed, 2 wrong usage. Write every option as "
    "--flag=value; --flag and --noflag are short for --flag=true and --flag=false."
)


def tool(typed: str, options_class: type[options_module.Options]) -> str:
    """Returns the help text of a tool.

    Args:
        typed: how the user calls the tool: "run_classifier" or "bert_tf classify".
        options_class: the record that declares the flags. Its docstring describes
            the tool.
    """
    declared = ordered(options_class)
    required = [
        flag_with_value(d, shows_choices=False) for d in declared if _is_required(d)
    ]
    usage = " ".join(["Usage:", typed, *required, "[--flag=value ...]"])
    paragraphs = [
        *_examples(typed),
        *map(_filled, inspect.cleandoc(options_class.__doc__ or "").split("\n\n")),
        "\n".join([_wrapped(usage, "", "    "), *_other_name(typed)]),
    ]
    for group in options_module.GROUPS:
        flags = [_flag_text(d) for d in declared if d.group == group]
        if group == options_module.GROUPS[-1]:
            flags += [_entry(flag, text) for flag, text in _ADVANCED]
        if flags:
            heading = f"{group[0].upper()}{group[1:]}:"
            paragraphs.append("\n".join([heading, *flags]))
    return "\n\n".join([*paragraphs, _filled(_EXIT_CODES)])


def overview(version: str) -> str:
    """Returns what `bert_tf --help` prints: every subcommand, in order of the work.

    Args:
        version: of the package.
    """
    column = 2 + max(len(subcommand.name) for subcommand in subcommands.SUBCOMMANDS)
    paragraphs = [
        f"bert_tf {version}: BERT for TensorFlow 2 and Keras 3, from raw text to a "
        "served model.",
        "Usage: bert_tf SUBCOMMAND [--flag=value ...]",
    ]
    stages = itertools.groupby(subcommands.SUBCOMMANDS, key=lambda s: s.stage)
    for stage, members in stages:
        lines = [
            _wrapped(s.summary, f"  {s.name:{column}}", " " * (column + 2))
            for s in members
        ]
        paragraphs.append("\n".join([f"{stage}:", *lines]))
    paragraphs.append(
        "`bert_tf SUBCOMMAND --help` explains a subcommand and its flags. As in the "
        "2018 release, every tool is also a command of its own: run_pretraining, "
        "run_classifier, run_squad and so on. `bert_tf` accepts these names, too."
    )
    return "\n\n".join([_filled(p) if "\n" not in p else p for p in paragraphs])


def ordered(
    options_class: type[options_module.Options],
) -> list[options_module.Declaration]:
    """Returns the options: required ones first, then the tool's own, then shared."""
    distance = {c: index for index, c in enumerate(options_class.__mro__)}

    def rank(declaration):
        is_optional = not _is_required(declaration)
        if declaration.name in _ACTIONS:
            return is_optional, len(distance), _ACTIONS.index(declaration.name)
        return is_optional, distance[declaration.introduced_by], 0

    return sorted(options_module.declarations(options_class), key=rank)


def _subcommand(typed: str) -> subcommands.Subcommand | None:
    return subcommands.find(typed.removeprefix("bert_tf "))


def _other_name(typed: str) -> Iterable[str]:
    subcommand = _subcommand(typed)
    if subcommand is not None:
        is_tool = typed == subcommand.tool
        other = f"bert_tf {subcommand.name}" if is_tool else subcommand.tool
        yield f"Same as: {other}"


def _examples(typed: str) -> Iterable[str]:
    subcommand = _subcommand(typed)
    if subcommand is None:
        return
    heading = "Examples:" if len(subcommand.examples) > 1 else "Example:"
    commands = [_command(typed, flags) for flags in subcommand.examples]
    yield "\n".join([heading, *commands])


def _command(typed: str, flags: str) -> str:
    """Returns a command that can be pasted into a shell, continued by backslashes."""
    # What follows " --" is a flag with its value, which may have spaces in quotes.
    lines = [f"{_FLAG_INDENT}{typed}"]
    for flag in re.split(r" (?=--)", flags):
        shlex.split(flag)  # Raises if a quoted value contains " --".
        if len(lines[-1]) + len(flag) + 3 > _width():
            lines[-1] += " \\"
            lines.append(f"{_FLAG_INDENT}   ")
        lines[-1] += f" {flag}"
    return "\n".join(lines)


def _flag_text(declaration: options_module.Declaration) -> str:
    flag, text = flag_with_value(declaration), declaration.help
    if len(flag) > _width() - len(_FLAG_INDENT):
        flag = flag_with_value(declaration, shows_choices=False)
        text += f" One of: {', '.join(map(str, declaration.choices or ()))}."
    notes = notes_on(declaration)
    return _entry(flag, f"{text} {notes}" if notes else text)


def _entry(flag: str, text: str) -> str:
    wrapped = _wrapped(text, _TEXT_INDENT, _TEXT_INDENT)
    return f"{_FLAG_INDENT}{flag}\n{wrapped}"


def flag_with_value(
    declaration: options_module.Declaration, *, shows_choices: bool = True
) -> str:
    """Returns the flag and what kind of value it takes: "--vocab_file=FILE".

    Args:
        declaration: of the option.
        shows_choices: whether to list the allowed values.
    """
    name, kind = declaration.name, declaration.item_kind
    if declaration.choices is not None and shows_choices:
        value = "|".join(str(choice) for choice in declaration.choices)
    elif kind is bool:
        value = _BOOLEAN
    elif kind is str and name.endswith("_file"):
        value = "FILE"
    elif kind is str and name.endswith("_dir"):
        value = "FOLDER"
    else:
        value = _KINDS[kind]
    if declaration.kind is tuple and not declaration.is_repeated:
        value += ",..."
    return f"--{name}={value}"


def notes_on(declaration: options_module.Declaration) -> str:
    """Returns "[required]", "[default: 32]" and the like, which stay on one line."""
    notes = ["repeatable"] if declaration.is_repeated else []
    default = declaration.default
    if _is_required(declaration):
        notes.append("required")
    elif default not in (None, "", ()):
        if declaration.kind is tuple:
            default = ",".join(str(item) for item in default)
        text = str(default).lower() if declaration.kind is bool else str(default)
        notes.append(f"default: {text}")
    return f"[{', '.join(notes)}]".replace(" ", _UNBROKEN) if notes else ""


def _is_required(declaration: options_module.Declaration) -> bool:
    return declaration.default is options_module.REQUIRED


def _filled(paragraph: str) -> str:
    # Indented lines are an example or a list, and keep their line ends.
    if paragraph.startswith(" "):
        return paragraph
    return _wrapped(" ".join(paragraph.split()), "", "")


def _wrapped(text: str, first_indent: str, indent: str) -> str:
    filled = textwrap.fill(
        text,
        _width(),
        initial_indent=first_indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return filled.replace(_UNBROKEN, " ")


def _width() -> int:
    columns = shutil.get_terminal_size((80, 24)).columns
    return min(max(columns, _MIN_WIDTH), _MAX_WIDTH)
