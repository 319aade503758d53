"""The command line: flags from an options record, help, log and progress, exit codes.

The only module that uses absl.flags. Every call defines its own flags, so that one
process can run several tools.
"""

import atexit
import difflib
import functools
import gc
import logging
import os
import pathlib
import pkgutil
import re
import signal
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from absl import flags

import bert_tf
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf import subcommands
from bert_tf.options import OptionError

logger = logging.getLogger(__name__)

DONE = 0
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count.
TERMINATED = 143  # 128 + SIGTERM.

HELP_FLAGS = ("-h", "--help", "-help", "--helpfull", "--helpshort")
_ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # TensorFlow reads this many megabytes of gs:// at a time, 64 by default. A block of
    # `remote_blocks` is smaller.
    "GCS_READ_CACHE_BLOCK_SIZE_MB": "4",
    # See `distribution.create_strategy`, which not all tools call.
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}
# New objects until the youngest generation is collected, and collections of a
# generation until the next older one is. Python 3.12's are 700, 10 and 10, with which
# reading the 88,000 training questions of SQuAD 1.1 takes a quarter longer.
_GARBAGE_THRESHOLDS = (10_000, 10, 50)


_TPU_VM = "omit it, and run the command with --device=tpu on the TPU VM"
# Flags of the 2018 release that no longer exist -> the value that requests what we do
# anyway, and for all other values what to type instead.
_REPLACED_FLAGS = {
    "use_tpu": (False, "use --device=tpu"),
    "tpu_zone": ("", _TPU_VM),
    "gcp_project": ("", _TPU_VM),
    "master": ("", _TPU_VM),
    "num_tpu_cores": ("8", "omit it; all cores of the TPU are used"),
    "use_one_hot_embeddings": (False, "omit it; one lookup works on every device"),
    "bert_hub_module_handle": (
        None,
        "use --init_checkpoint with the module's folder, or with the name of a "
        "released model",
    ),
}
_RECIPES = pathlib.Path(__file__).parent / "recipes"
_RECIPE_PREFIX = "recipe:"  # --flagfile=recipe:NAME is _RECIPES / NAME.flags.


def main(argv: list[str] | None = None) -> int:
    """Runs the subcommand that the first argument names, and returns its exit code.

    Args:
        argv: arguments without the program's name; None takes the process's own.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if not argv or argv[0] in HELP_FLAGS:
        return print_report(subcommands.overview(bert_tf.__version__))
    name, *rest = argv
    if name == "--version":
        return print_report(f"bert_tf {bert_tf.__version__}")
    if name.startswith("-"):
        advice = f"Expected a subcommand before {name}; `bert_tf --help` lists them."
        return complain("bert_tf", advice, WRONG_USAGE)
    subcommand = subcommands.BY_NAME.get(name)
    if subcommand is None:
        near = difflib.get_close_matches(name.lower(), subcommands.BY_NAME, n=1)
        advice = "`bert_tf --help` lists them all."
        hint = f"did you mean {near[0]}?" if near else advice
        return complain("bert_tf", f"Unknown subcommand {name!r}; {hint}", WRONG_USAGE)
    return run_tool(subcommand.tool, rest, typed=f"bert_tf {name}")


def run_tool(
    tool: str, argv: list[str] | None = None, *, typed: str | None = None
) -> int:
    """Runs a tool of the table `subcommands` and returns its exit code; see `run`."""
    subcommand = subcommands.BY_NAME[tool]

    def work(record: Any) -> object:
        is_first = "tensorflow" not in sys.modules
        if is_first:
            # TensorFlow and Keras are 800,000 objects, which live until the process
            # ends. Scanning them during the import and at the end takes a second each.
            gc.disable()
            atexit.register(gc.freeze)
        try:
            function = pkgutil.resolve_name(subcommand.work)
        finally:
            if is_first:
                gc.freeze()
                gc.enable()
        return function(record)

    options_class = pkgutil.resolve_name(subcommand.options)
    return run(typed or tool, options_class, work, argv)


def tool_main(tool: str) -> Callable[..., int]:
    """Returns the function `main` of a tool's script."""
    return functools.partial(run_tool, tool)


def run(
    typed: str,
    options_class: type[options_module.Options],
    work: Callable[[Any], object],
    argv: list[str] | None = None,
) -> int:
    """Runs a function with the options that the flags specify; returns its exit code.

    Args:
        typed: how the user called the tool, such as "bert_tf classify", for help and
            error messages.
        options_class: the record that declares the flags.
        work: takes the record, does the job and returns a report for standard output,
            or None. The exit code of an `options.FailureReport` is 1.
        argv: arguments without the program's name; None takes the process's own.

    Returns:
        0: done. 1: the job failed (ValueError, OSError, a missing package, or a
        `FailureReport`), with one line on standard error. 2: wrong usage,
        likewise. 130: interrupted. 143: a training run received SIGTERM and was saved;
        the same command resumes it. In both cases the line says what is saved and how
        to continue.
    """
    _open_closed_streams()
    argv = sys.argv[1:] if argv is None else list(argv)
    if any(argument in HELP_FLAGS for argument in argv):
        return print_report(subcommands.tool_help(typed, options_class))
    # The tools need TensorFlow, regardless of the backend set in the user's Keras.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        values, flag_values = _parse(options_class, argv)
        gc.set_threshold(*_GARBAGE_THRESHOLDS)
        with progress_module.shown_with_log(sys.stderr):
            values |= _recipe_values(options_class, values, argv, flag_values)
            report = work(options_class(**values))
    except OptionError as error:
        return complain(typed, error, WRONG_USAGE)
    except (ValueError, OSError, ImportError) as error:
        # An ImportError with a module's name is Python's own and a defect; ours has
        # no name and says which extra to install.
        if flag_values["traceback"].value or getattr(error, "name", None):
            raise
        return complain(typed, error, FAILED)
    except KeyboardInterrupt as interrupt:
        number, saved = signal.SIGINT, ""
        if len(interrupt.args) == 2:  # From `training.stopping`.
            number, saved = interrupt.args
        is_terminated = number == signal.SIGTERM
        sentence = "terminated" if is_terminated else "interrupted"
        sentence += f"; {saved}." if saved else "."
        code = TERMINATED if is_terminated else INTERRUPTED
        return complain(typed, f"{sentence} {options_class.after_interrupt}", code)
    if report:
        print_report(str(report))
    return FAILED if isinstance(report, options_module.FailureReport) else DONE


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


def print_report(report: str) -> int:
    """Prints a report to standard output and returns exit code 0."""
    try:
        print(report, flush=True)
    except BrokenPipeError:  # For example `| head`, which has read all it needs.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _open_closed_streams() -> None:
    """Redirects standard streams that the caller closed (`2>&-`) to the null device.

    Otherwise the next file that is opened, such as a checkpoint, gets that descriptor
    and receives what C++ code writes to standard error.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, os.fdopen(descriptor, "w"))


def _parse(
    options_class: type[options_module.Options], argv: list[str]
) -> tuple[dict[str, Any], flags.FlagValues]:
    """Returns the values that were given, and all flags."""
    declared = {d.name: d for d in options_module.declarations(options_class)}
    flag_values = _define(declared.values())
    _check_given_once(argv, declared)
    try:
        left_over = flag_values(["tool", *argv])[1:]
    except flags.UnrecognizedFlagError as error:
        name = error.flagname
        near = difflib.get_close_matches(name.replace("-", "_"), flag_values, n=1)
        hint = f"did you mean --{near[0]}?" if near else "--help lists all flags."
        if name in options_class.OTHER_FLAGS:
            hint = f"{options_class.OTHER_FLAGS[name]}."
        raise OptionError(f"Unknown flag --{name}; {hint}") from None
    except flags.IllegalFlagValueError as error:
        # absl parses booleans only; it takes all other flags as text.
        match = re.match(r"flag --(\w+)=(.*): \(", str(error))
        if match is None:
            raise OptionError(str(error)) from None
        raise OptionError(
            flag=match[1], got=match[2], expected="true or false"
        ) from None
    except flags.Error as error:
        raise OptionError(str(error).rstrip(".") + ".") from None
    _check_replaced_flags(flag_values)
    places = [n for n in options_class.POSITIONAL if not flag_values[n].present]
    if len(left_over) > len(places):
        shown = repr(left_over[len(places)])
        raise OptionError(f"Unexpected {shown}; write every option as --flag=value.")
    for name, value in zip(places, left_over, strict=False):
        flag_values[name].parse(value)
    values: dict[str, Any] = {}
    for name, declaration in declared.items():
        flag: Any = flag_values[name]
        if flag.present and (declaration.is_repeated or declaration.kind is bool):
            values[name] = flag.value
        elif flag.present:
            values[name] = options_module.parse(declaration, flag.value)
        elif declaration.is_required:
            raise OptionError(f"--{name} is required: {declaration.help}")
    return values, flag_values


def _recipe_values(options_class, values, argv, flag_values):
    """Returns and logs the values of --recipe=auto; {} without it."""
    if flag_values["recipe"].value is None:
        is_file = any(argument.lstrip("-")[:8] == "flagfile" for argument in argv)
        is_chosen = is_file or values.get("bias_correction")
        if values.get("do_train") and not is_chosen:
            logger.info(
                "These are the settings of 2018; --recipe=auto usually learns faster."
            )
        return {}
    from bert_tf import recipe  # Needs TensorFlow.

    chosen = recipe.choose(options_class, values)
    logger.info("--recipe=auto: %s", recipe.shown(chosen))
    return chosen


def _check_given_once(
    argv: Sequence[str], declared: Mapping[str, options_module.Declaration]
) -> None:
    """Refuses a flag with one value that is given twice; absl would use the last.

    A flag may replace one of a --flagfile.
    """
    given = set()
    for argument in argv:
        name = argument.lstrip("-").partition("=")[0]
        declaration = declared.get(name) or declared.get(name.removeprefix("no"))
        if declaration is None or not argument.startswith("-"):
            continue
        if declaration.name in given and not declaration.is_repeated:
            is_list = declaration.kind is tuple
            advice = "once, with commas between its items" if is_list else "once"
            raise OptionError(f"--{declaration.name} is given twice; give it {advice}.")
        given.add(declaration.name)


class _FlagValues(flags.FlagValues):
    """Flags whose --flagfile also takes a recipe, on the command line and in a file."""

    def _get_flag_file_lines(
        self, filename: str, parsed_file_stack: list[str] | None = None
    ) -> list[str]:
        if filename.startswith(_RECIPE_PREFIX):
            filename = str(_recipe(filename.removeprefix(_RECIPE_PREFIX)))
        try:
            return super()._get_flag_file_lines(filename, parsed_file_stack)
        except UnicodeDecodeError:
            message = f"--flagfile={filename} is not UTF-8; save it as UTF-8."
            raise OptionError(message) from None


def _recipe(name: str) -> pathlib.Path:
    """Returns the path of a recipe of this package."""
    recipes = {
        path.relative_to(_RECIPES).with_suffix("").as_posix(): path
        for path in sorted(_RECIPES.rglob("*.flags"))
    }
    if name not in recipes:
        raise OptionError(
            f"--flagfile={_RECIPE_PREFIX}{name}: unknown recipe {name!r}; expected one "
            f"of {', '.join(recipes)}."
        )
    return recipes[name]


def _define(declared: Iterable[options_module.Declaration]) -> flags.FlagValues:
    """Returns new flags. All but booleans are text, which `options.parse` reads."""
    flag_values = _FlagValues()
    flags.DEFINE_boolean("traceback", False, "", flag_values=flag_values)
    flags.DEFINE_enum("recipe", None, ["auto"], "", flag_values=flag_values)
    for declaration in declared:
        define: Callable[..., Any] = flags.DEFINE_string
        if declaration.kind is bool:
            define = flags.DEFINE_boolean
        elif declaration.is_repeated:
            define = flags.DEFINE_multi_string
        define(declaration.name, None, declaration.help, flag_values=flag_values)
    for name, (without_effect, _) in _REPLACED_FLAGS.items():
        is_boolean = without_effect is False
        define = flags.DEFINE_boolean if is_boolean else flags.DEFINE_string
        define(name, None, "", flag_values=flag_values)
    return flag_values


def _check_replaced_flags(flag_values: flags.FlagValues) -> None:
    """Refuses 2018 flags that ask for something that is now done by other flags."""
    for name, (without_effect, advice) in _REPLACED_FLAGS.items():
        flag = flag_values[name]
        if not flag.present or flag.value == without_effect:
            continue
        value = str(flag.value).lower() if isinstance(flag.value, bool) else flag.value
        raise OptionError(f"--{name}={value} is no longer supported: {advice}.")
