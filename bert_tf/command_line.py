"""Starts a tool: flags from an options record, logging, progress, exit codes.

The only module that uses absl.flags. Every call defines its own flags, so that one
process can run several tools.
"""

import contextlib
import dataclasses
import difflib
import functools
import itertools
import os
import pathlib
import re
import signal
import sys
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from absl import flags

from bert_tf import help_text
from bert_tf import imports
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf import terminal

DONE = 0
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count.
TERMINATED = 143  # 128 + SIGTERM.

_MOMENT = 0.01  # In seconds.

HELP_FLAGS = ("-h", "--help", "-help", "--helpfull", "--helpshort")


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ReplacedFlag:
    """A flag of the 2018 release that no longer exists."""

    without_effect: bool | str | None  # Value that requests what we do anyway.
    advice: str  # For all other values: what to type instead.


_REPLACED_FLAGS = {
    "use_tpu": _ReplacedFlag(
        without_effect=False,
        advice="use --device=tpu, with --tpu_name unless this is a TPU VM",
    ),
    # The tools that train have these two; see `training.options`.
    "tpu_zone": _ReplacedFlag(
        without_effect="",
        advice="omit it; this tool does not use a TPU",
    ),
    "gcp_project": _ReplacedFlag(
        without_effect="",
        advice="omit it; this tool does not use a TPU",
    ),
    "master": _ReplacedFlag(
        without_effect="",
        advice="use --device=tpu with the address as --tpu_name",
    ),
    "num_tpu_cores": _ReplacedFlag(
        without_effect="8",
        advice="omit it; all cores of the TPU are used",
    ),
    "use_one_hot_embeddings": _ReplacedFlag(
        without_effect=False,
        advice="omit it; one lookup works on every device",
    ),
    "bert_hub_module_handle": _ReplacedFlag(
        without_effect=None,
        advice="use --init_checkpoint with the module's folder, or with the name of a "
        "released model",
    ),
}
# Flag spellings of programs that a tool replaces, here SQuAD's evaluate-v2.0.py.
ALIASES = {"na-prob-thresh": "na_prob_thresh"}
RECIPES = pathlib.Path(__file__).parent / "recipes"
_RECIPE_PREFIX = "recipe:"  # --flagfile=recipe:NAME is RECIPES / NAME.flags.


def run(
    tool_name: str,
    options_class: type[options_module.Options],
    work: Callable[[Any, progress_module.Progress], str | None],
    argv: list[str] | None = None,
    *,
    typed: str | None = None,
) -> int:
    """Runs a tool and returns its exit code.

    Args:
        tool_name: its name on the command line.
        options_class: the record that declares the flags.
        work: does the job and returns a report for standard output, or None. The exit
            code of an `options.FailureReport` is 1.
        argv: arguments without the program's name; None takes the process's own.
        typed: how the user called the tool if not by its name, such as
            "bert_tf classify". Help and error messages use it.

    Returns:
        0: done. 1: the job failed (ValueError, OSError, or a missing package), with
        one line on standard error. 2: wrong usage, likewise. 130: interrupted. 143:
        a training run received SIGTERM and was saved; the same command resumes it. In
        both cases the line says what is saved and how to continue.
    """
    typed = typed or tool_name
    _open_closed_streams()
    argv = sys.argv[1:] if argv is None else list(argv)
    if any(argument in HELP_FLAGS for argument in argv):
        return print_report(help_text.tool(typed, options_class))
    # The tools need TensorFlow, regardless of the backend set in the user's Keras.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # TensorFlow reads this many megabytes of gs:// at a time, 64 by default. A block of
    # `remote_blocks` is smaller.
    os.environ.setdefault("GCS_READ_CACHE_BLOCK_SIZE_MB", "4")
    # Otherwise TensorFlow takes the whole memory of each GPU, also with --device=cpu.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    try:
        values, shows_traceback = _parse(options_class, argv)
        record = options_class(**values)
    except options_module.OptionError as error:
        return complain(typed, error, WRONG_USAGE)
    try:
        with (
            imports.quick_and_quiet(),
            imports.rare_garbage_collection(),
            terminal.progress_and_logging(sys.stderr) as shown,
            _no_lost_interrupts(),
        ):
            report = work(record, shown)
    except options_module.OptionError as error:
        return complain(typed, error, WRONG_USAGE)
    except (ValueError, OSError, ImportError) as error:
        # An ImportError with a module's name is Python's own and a defect; ours has
        # no name and says which extra to install.
        if shows_traceback or getattr(error, "name", None):
            raise
        return complain(typed, f"{error}{_recipe_advice(argv, error)}", FAILED)
    except KeyboardInterrupt as interrupt:
        return _complain_of_interrupt(typed, interrupt, options_class.after_interrupt)
    if report:
        print_report(report)
    return FAILED if isinstance(report, options_module.FailureReport) else DONE


def _open_closed_streams() -> None:
    """Redirects standard streams that the caller closed (`2>&-`) to the null device.

    Otherwise the next file that is opened, such as a checkpoint, gets that descriptor
    and receives what C++ code writes to standard error.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(descriptor, "w"))


@contextlib.contextmanager
def _no_lost_interrupts() -> Iterator[None]:
    """Repeats a Ctrl-C during a finalizer or a callback of the garbage collector.

    Python would print the KeyboardInterrupt and continue.
    """
    previous = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            # Here it would be lost as well. A signal, because it ends a wait.
            interrupt = functools.partial(os.kill, os.getpid(), signal.SIGINT)
            threading.Timer(_MOMENT, interrupt).start()
        else:
            previous(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = previous


def complain(typed: str, failure: object, code: int) -> int:
    """Writes one line to standard error and returns the exit code.

    Args:
        typed: how the user called the tool; the line starts with it.
        failure: an exception or a sentence.
        code: the exit code.
    """
    sentence = " ".join(str(failure).split())
    sys.stderr.write(f"{typed}: {sentence}\n")
    return code


def _complain_of_interrupt(
    typed: str, interrupt: KeyboardInterrupt, after_interrupt: str
) -> int:
    """Writes how a tool was interrupted, what is saved, and how to continue."""
    number, saved = signal.SIGINT, ""
    if len(interrupt.args) == 2:  # From `training.interrupts`.
        number, saved = interrupt.args
    is_terminated = number == signal.SIGTERM
    sentence = "terminated" if is_terminated else "interrupted"
    sentence += f"; {saved}." if saved else "."
    return complain(
        typed,
        f"{sentence} {after_interrupt}",
        TERMINATED if is_terminated else INTERRUPTED,
    )


def print_report(report: str) -> int:
    """Prints a report to standard output and returns exit code 0."""
    try:
        print(report, flush=True)
    except BrokenPipeError:  # For example `| head`, which has read all it needs.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _parse(
    options_class: type[options_module.Options], argv: list[str]
) -> tuple[dict[str, Any], bool]:
    """Returns the values that were given, and whether a traceback is wanted."""
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
    _check_replaced_flags(flag_values, declared)
    if left_over:
        sentence = f"Unexpected {left_over[0]!r}; write every option as --flag=value."
        raise options_module.OptionError(sentence)
    values: dict[str, Any] = {}
    for name, declaration in declared.items():
        given: Any = flag_values[name].value
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
    return values, bool(flag_values["traceback"].value)


class _FlagValues(flags.FlagValues):
    """Flags whose --flagfile also takes a recipe, on the command line and in a file."""

    def _get_flag_file_lines(
        self, filename: str, parsed_file_stack: list[str] | None = None
    ) -> list[str]:
        return super()._get_flag_file_lines(_flag_file(filename), parsed_file_stack)


def _flag_file(name: str) -> str:
    """Returns the path of a flag file, or of the recipe that "recipe:NAME" names."""
    paths = sorted(RECIPES.rglob("*.flags"))
    recipes = {
        path.relative_to(RECIPES).with_suffix("").as_posix(): str(path)
        for path in paths
    }
    if name.startswith(_RECIPE_PREFIX):
        recipe = name.removeprefix(_RECIPE_PREFIX)
        if recipe not in recipes:
            raise options_module.OptionError(
                f"--flagfile={name}: unknown recipe {recipe!r}; expected one of "
                f"{', '.join(recipes)}."
            )
        return recipes[recipe]
    # Earlier versions had the recipes beside the package.
    recipe = name.removeprefix("recipes/").removesuffix(".flags")
    was_recipe = name == f"recipes/{recipe}.flags" and recipe in recipes
    if was_recipe and not os.path.exists(name):
        raise options_module.OptionError(
            f"--flagfile={name}: there is no such file; the recipe is "
            f"--flagfile={_RECIPE_PREFIX}{recipe}."
        )
    return name


def _recipe_advice(argv: Sequence[str], failure: Exception) -> str:
    """Returns what to do if a file that a recipe reads is missing, "" otherwise."""
    missing = re.fullmatch(r"(?:No such file:|No file matches) (.+)\.", str(failure))
    for argument in argv:
        found = re.fullmatch(rf"(?:--?flagfile=)?{_RECIPE_PREFIX}(.+)", argument)
        if not found or not missing:
            continue
        path = _flag_file(found[0].partition("=")[2] or found[0])
        text = pathlib.Path(path).read_text(encoding="utf-8")
        for flag, value in re.findall(r"^(--\w+)=(.+)$", text, re.MULTILINE):
            # A phase has several settings in one value.
            if missing[1] in re.split(r"[ ,=]", value):
                return (
                    f" It is the recipe's {flag}: create it with the commands in "
                    f"{path}, or set {flag} to your own files."
                )
    return ""


def _define(declared: Iterable[options_module.Declaration]) -> flags.FlagValues:
    """Returns new flags. All but booleans are text, which `options.parse` reads."""
    flag_values = _FlagValues()
    flags.DEFINE_boolean("traceback", False, "", flag_values=flag_values)
    for declaration in declared:
        define: Callable[..., Any] = flags.DEFINE_string
        if declaration.kind is bool:
            define = flags.DEFINE_boolean
        elif declaration.is_repeated:
            define = flags.DEFINE_multi_string
        define(declaration.name, None, declaration.help, flag_values=flag_values)
    for name in _REPLACED_FLAGS.keys() - flag_values:
        is_boolean = _REPLACED_FLAGS[name].without_effect is False
        define = flags.DEFINE_boolean if is_boolean else flags.DEFINE_string
        define(name, None, "", flag_values=flag_values)
    for alias, name in ALIASES.items():
        if name in flag_values:
            flags.DEFINE_alias(alias, name, flag_values=flag_values)
    return flag_values


def _check_replaced_flags(
    flag_values: flags.FlagValues, declared: Mapping[str, options_module.Declaration]
) -> None:
    """Refuses 2018 flags that ask for something that is now done by other flags."""
    for name, replaced in _REPLACED_FLAGS.items():
        flag = flag_values[name]
        if (
            name in declared
            or not flag.present
            or flag.value == replaced.without_effect
        ):
            continue
        value = str(flag.value).lower() if isinstance(flag.value, bool) else flag.value
        raise options_module.OptionError(
            f"--{name}={value} is no longer supported: {replaced.advice}."
        )


def _unknown_flag(name: str, declared: Mapping[str, options_module.Declaration]) -> str:
    names = [*declared, *(f"no{n}" for n, d in declared.items() if d.kind is bool)]
    underscored = name.replace("-", "_")
    nearest = difflib.get_close_matches(underscored, names, n=1, cutoff=0.6)
    hint = f"did you mean --{nearest[0]}?" if nearest else "--help lists all flags."
    return f"Unknown flag --{name}; {hint}"


def _wrong_boolean(message: str) -> str:
    # absl parses booleans only; it takes all other flags as text.
    match = re.match(r"flag --(\w+)=(.*): \(", message)
    if match is None:
        return message
    return f"--{match[1]}: expected true or false, got {match[2]!r}."


def _is_not_required(declaration: options_module.Declaration) -> bool:
    return declaration.default is not options_module.REQUIRED
