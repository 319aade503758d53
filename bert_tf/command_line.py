"""Starts a tool: flags from an options record, logging, progress, exit codes.

The only module that knows absl.flags. Every call has flags of its own, so that two
tools can be imported, and run, in one process.
"""

import dataclasses
import difflib
import inspect
import itertools
import os
import re
import signal
import sys
import textwrap
from collections.abc import Callable

from absl import flags

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf import terminal

DONE = 0
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count.
TERMINATED = 143  # 128 + SIGTERM.

# Flags of 2018 that have no meaning any more, and what does their work today.
REPLACEMENTS = {
    "use_tpu": "use --device=tpu",
    "tpu_zone": "put the zone into --tpu_name, or let TensorFlow's resolver find it",
    "gcp_project": "let TensorFlow's resolver find the project",
    "master": "use --device and --tpu_name",
    "num_tpu_cores": "leave it out: all cores of the TPU are used",
    "use_one_hot_embeddings": "leave it out: one lookup serves every device",
}
_HELP_FLAGS = ("-h", "--help", "-help", "--helpfull", "--helpshort")
_WIDTH = 88


@dataclasses.dataclass(frozen=True, kw_only=True)
class BadNews:
    """What a tool returns that did its job, and whose result is a failure."""

    report: str  # For standard output; the exit code is 1.


def run(
    tool_name: str,
    options_class: type[options_module.Options],
    work: Callable[
        [options_module.Options, progress_module.Progress], str | BadNews | None
    ],
    argv: list[str] | None = None,
) -> int:
    """Runs a tool and returns its exit code.

    Args:
        tool_name: its name on the command line.
        options_class: the record that its flags are made from; the class's docstring
            is the tool's description.
        work: does the job and returns a report for standard output, None, or
            `BadNews`.
        argv: arguments without the program's name; None takes the process's own.

    Returns:
        0: done. 1: the job failed (ValueError, OSError, or a package to install), with
        one line on standard error. 2: wrong usage, likewise. 130: interrupted. 143:
        a training run was sent SIGTERM; it is saved, and the same command goes on.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if any(argument in _HELP_FLAGS for argument in argv):
        return _print_report(help_text(tool_name, options_class))
    # The tools' work is TensorFlow's, whatever backend the user's own Keras has.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        values, shows_traceback = _parse(options_class, argv)
        record = options_class(**values)
    except options_module.OptionError as error:
        return _complain(tool_name, error, WRONG_USAGE)
    try:
        with terminal.progress_and_logging(sys.stderr) as shown:
            report = work(record, shown)
    except options_module.OptionError as error:
        return _complain(tool_name, error, WRONG_USAGE)
    except (ValueError, OSError, ImportError) as error:
        # Python's own ImportError carries a module's name and is a defect; ours says
        # which extra to install.
        if shows_traceback or getattr(error, "name", None):
            raise
        return _complain(tool_name, error, FAILED)
    except KeyboardInterrupt as interrupt:
        if signal.SIGTERM in interrupt.args:
            return _complain(tool_name, "terminated; the run is saved.", TERMINATED)
        return _complain(tool_name, "interrupted.", INTERRUPTED)
    if isinstance(report, BadNews):
        _print_report(report.report)
        return FAILED
    return _print_report(report) if report else DONE


def help_text(tool_name: str, options_class: type[options_module.Options]) -> str:
    """Returns what `--help` prints: description, usage, and every flag."""
    declared = sorted(options_module.declarations(options_class), key=_is_not_required)
    required = [f"--{d.name}=..." for d in declared if not _is_not_required(d)]
    usage = " ".join([tool_name, *required, "[--flag=value ...]"])
    paragraphs = [
        "\n\n".join(map(_filled, inspect.getdoc(options_class).split("\n\n"))),
        "Usage:\n" + textwrap.fill(usage, _WIDTH, **_indents("  ", "      ")),
        "Flags:",
        *(_flag_help(declaration) for declaration in declared),
        "  --traceback (default false)\n      Show where in the code a failure arose.",
    ]
    return "\n\n".join(paragraphs)


def _parse(options_class, argv):
    declared = {d.name: d for d in options_module.declarations(options_class)}
    flag_values = _define(declared.values())
    try:
        left_over = flag_values(["tool", *argv])[1:]
    except flags.UnrecognizedFlagError as error:
        raise options_module.OptionError(
            _unknown_flag(error.flagname, declared)
        ) from None
    except flags.IllegalFlagValueError as error:
        raise options_module.OptionError(_wrong_boolean(str(error))) from None
    except flags.Error as error:
        raise options_module.OptionError(str(error).rstrip(".") + ".") from None
    if left_over:
        sentence = f"Unexpected {left_over[0]!r}; write every option as --name=value."
        raise options_module.OptionError(sentence)
    values = {}
    for name, declaration in declared.items():
        given = flag_values[name].value
        if declaration.is_repeated and given:
            items = [options_module.parse(declaration, text) for text in given]
            values[name] = tuple(itertools.chain.from_iterable(items))
        elif flag_values[name].present:
            is_parsed = declaration.kind is bool
            values[name] = (
                given if is_parsed else options_module.parse(declaration, given)
            )
        elif not _is_not_required(declaration):
            raise options_module.OptionError(
                f"--{name} is required: {declaration.help}"
            )
    return values, flag_values["traceback"].value


def _define(declared):
    """Returns new flags; all but booleans are text, which `options.parse` reads."""
    flag_values = flags.FlagValues()
    flags.DEFINE_boolean("traceback", False, "", flag_values=flag_values)
    for declaration in declared:
        define = flags.DEFINE_string
        if declaration.kind is bool:
            define = flags.DEFINE_boolean
        elif declaration.is_repeated:
            define = flags.DEFINE_multi_string
        define(declaration.name, None, declaration.help, flag_values=flag_values)
    return flag_values


def _unknown_flag(name, declared):
    stem = name.removeprefix("no")
    for known in (name, stem):
        if known in REPLACEMENTS:
            return f"--{known} of the 2018 release is gone: {REPLACEMENTS[known]}."
    names = [*declared, *(f"no{n}" for n, d in declared.items() if d.kind is bool)]
    wanted = name.replace("-", "_")
    nearest = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    hint = f"did you mean --{nearest[0]}?" if nearest else "--help lists all flags."
    return f"There is no flag --{name}; {hint}"


def _wrong_boolean(message):
    # Only booleans are parsed by absl; to it, all other flags are text.
    match = re.match(r"flag --(\w+)=(.*): \(", message)
    return f"--{match[1]}: expected true or false, got {match[2]!r}."


def _is_not_required(declaration):
    return declaration.default is not options_module.REQUIRED


def _filled(paragraph):
    # Indented lines are an example, and stay as they are.
    if paragraph.startswith(" "):
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), _WIDTH)


def _flag_help(declaration):
    if declaration.is_repeated:
        kind = "text, repeatable"
    elif declaration.kind is tuple:
        kind = "comma list"
    else:
        kind = declaration.kind.__name__.replace("str", "text")
    notes = [kind]
    if declaration.choices is not None:
        notes = ["|".join(str(choice) for choice in declaration.choices)]
    notes.append(_default_text(declaration))
    text = textwrap.fill(declaration.help, _WIDTH, **_indents("      ", "      "))
    return f"  --{declaration.name} ({', '.join(notes)})\n{text}"


def _default_text(declaration):
    default = declaration.default
    if default is options_module.REQUIRED:
        return "required"
    if declaration.kind is tuple and default:
        default = ",".join(str(item) for item in default)
    if default in (None, "", ()):
        return "optional"
    return f"default {str(default).lower() if declaration.kind is bool else default}"


def _indents(first, other):
    return {"initial_indent": first, "subsequent_indent": other}


def _complain(tool_name, failure, code):
    sentence = " ".join(str(failure).split())
    sys.stderr.write(f"{tool_name}: {sentence}\n")
    return code


def _print_report(report):
    try:
        print(report, flush=True)
    except BrokenPipeError:  # For example | head: what it wanted, it has.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE
