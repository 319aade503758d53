"""Options records: each option of a tool with its default, meaning and limits.

The command line derives its flags from these records, and Python callers construct the
same records, so the same code validates both:

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class PackOptions(options.Options):
        \"\"\"Packs text.\"\"\"

        input_file: tuple[str, ...] = options.option(help="Text files.")
        max_seq_length: int = options.option(128, help="Row length.", minimum=1)

    PackOptions(input_file="a.txt,b.txt", max_seq_length=0)
    # OptionError: --max_seq_length: expected at least 1, got 0.
"""

import dataclasses
import os
import types
import typing
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import ClassVar

# Marks an option that has no default.
REQUIRED: Any = dataclasses.MISSING

# Headings of `--help`, in the order in which it prints them.
TASK_AND_DATA = "what to do and on which data"
GROUPS = (
    TASK_AND_DATA,
    "model",
    "training",
    "evaluation",
    "devices",
    "saving",
    "advanced",
)


# Whether a command that resumes a run may change an option.
REFUSED, FREE, LONGER = "refused", "free", "longer"
_FREE_GROUPS = ("devices", "evaluation", "saving")


class Implicit:
    """Base class of defaults that are distinct from an equal value given by a user."""


class _ImplicitInt(int, Implicit):
    pass


class _ImplicitFloat(float, Implicit):
    pass


class _ImplicitStr(str, Implicit):
    pass


def implicit(number: Any) -> Any:
    """Returns a default, an int, a float or a str, that `is_given` recognizes.

    Use it where a recorded value overrides the default, but not a given flag, even if
    the flag's value equals the default.
    """
    kinds = {int: _ImplicitInt, float: _ImplicitFloat, str: _ImplicitStr}
    return kinds[type(number)](number)


def is_given(value: Any) -> bool:
    """Returns whether an option's value was given, and is not an `implicit` default."""
    return not isinstance(value, Implicit)


class OptionError(ValueError):
    """An option has an invalid value, or contradicts another one.

    Example:
        >>> print(OptionError(flag="top_k", got=0, expected="at least 1"))
        --top_k: expected at least 1, got 0.

    Args:
        sentence: the whole message, which names the flag; or None, with the rest.
        flag: name of the option.
        got: its value.
        expected: what it should be.
    """

    def __init__(
        self,
        sentence: str | None = None,
        *,
        flag: str | None = None,
        got: object = None,
        expected: str | None = None,
    ) -> None:
        self.flag, self.got, self.expected = flag, got, expected
        super().__init__(sentence or f"--{flag}: expected {expected}, got {got!r}.")


class FailureReport(str):
    """The report of a tool that completed its work and whose result is a failure.

    `--check` returns one if it finds errors in the data. The exit code is 1.
    """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Declaration:
    """One option of an options record."""

    name: str
    kind: type  # str, int, float, bool, or tuple for a comma list.
    item_kind: type  # Kind of a tuple's items; for other kinds the same as `kind`.
    is_optional: bool  # Whether None is a value.
    default: Any  # REQUIRED if there is none.
    help: str
    choices: tuple[Any, ...] | None  # None: all values.
    minimum: float | None
    maximum: float | None
    is_repeated: bool  # Whether the flag is given once for each item of a tuple.
    group: str  # One of `GROUPS`.
    on_resume: str  # REFUSED, FREE or LONGER.
    is_path: bool  # Whether it names files, folders or checkpoints.
    introduced_by: type  # The base-most class that declares the option.

    @property
    def is_required(self) -> bool:
        """Whether the option has no default."""
        return self.default is REQUIRED


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of all options records. Validates its values on construction.

    A subclass may set `flag_group` to the `--help` group of the options that it
    declares itself. Subclasses do not inherit it. A subclass may declare an option
    again. What it leaves out, such as the help, stays: `learning_rate: float = 2e-5`
    only changes the default.
    """

    flag_group: ClassVar[str] = TASK_AND_DATA
    # What a user should know and do after Ctrl-C; the command line prints it.
    after_interrupt: ClassVar[str] = "Nothing was written; run the same command again."
    # Options whose values may be given without their flags, in this order.
    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    # Flags of similar tools that this one lacks, and what to do instead.
    OTHER_FLAGS: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        validate(self)

    def is_default(self, name: str) -> bool:
        """Returns whether the value of an option equals its default."""
        default = type(self).__dataclass_fields__[name].default
        return bool(getattr(self, name) == default)


def option(
    default: Any = REQUIRED,
    *,
    help: str,
    choices: tuple[Any, ...] | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    repeated: bool = False,
    group: str | None = None,
    on_resume: str | None = None,
    is_path: bool | None = None,
) -> Any:
    """Returns a dataclass field that declares an option.

    The field's type is str, int, float, bool, one of these `| None`, or a tuple of any
    length of str, int or float.

    Args:
        default: the value if the option is not given; `REQUIRED` if it must be given.
        help: one or two sentences for `--help`.
        choices: the allowed values, or None.
        minimum: the smallest allowed number, or None.
        maximum: the largest allowed number, or None.
        repeated: for a tuple whose items may contain commas: the flag is given once
            for each item.
        group: one of `GROUPS`; default: the `flag_group` of the declaring class.
        on_resume: whether a command that resumes a run may change the value: `FREE`,
            `REFUSED`, or `LONGER`, if the run then has steps left. Default: `FREE` for
            devices, evaluation and saving, which do not affect the trained weights.
        is_path: whether the value names files, folders or checkpoints. Default:
            whether the name ends in _file or _dir.
    """
    limits = {"choices": choices, "minimum": minimum, "maximum": maximum}
    metadata = {"help": help, "is_repeated": repeated, "group": group, **limits}
    metadata |= {"on_resume": on_resume, "is_path": is_path}
    return dataclasses.field(default=default, metadata=metadata)


def declarations(options_class: type[Options]) -> tuple[Declaration, ...]:
    """Returns the options of a record, those of base classes first."""
    annotations = typing.get_type_hints(options_class)
    return tuple(
        _declaration(options_class, field, annotations[field.name])
        for field in dataclasses.fields(options_class)
    )


def parse(declaration: Declaration, text: str) -> Any:
    """Returns the value of an option that the command line gives as text.

    Raises:
        OptionError: the text is not a number, or not a boolean, where one is expected.
    """
    if declaration.is_optional and text == "":
        return None
    if declaration.kind is tuple and declaration.is_repeated:
        return (_parse_item(declaration, text),)
    if declaration.kind is tuple:
        items = [item.strip() for item in text.split(",")]
        return tuple(_parse_item(declaration, item) for item in items if item)
    return _parse_item(declaration, text)


def validate(record: Options) -> None:
    """Checks every option of a record and converts it to its declared kind.

    A string becomes a tuple if a comma list is declared, a path becomes a string, and
    an int becomes a float if a float is declared.

    Raises:
        OptionError: a value has the wrong kind, is out of range, or is not one of the
            choices. The message names the flag, the value and what was expected.
    """
    for declaration in declarations(type(record)):
        value = _converted(declaration, getattr(record, declaration.name))
        _check_limits(declaration, value)
        # The record is frozen, but still under construction.
        object.__setattr__(record, declaration.name, value)


def check_not_overwritten(
    outputs: Mapping[str, Iterable[str]], inputs: Mapping[str, Iterable[str]]
) -> None:
    """Checks that the tool does not write a file that it also reads, or one file twice.

    Args:
        outputs: name of an option -> paths (no globs) that the tool writes.
        inputs: name of an option -> paths that the tool reads. Links are resolved.

    Raises:
        OptionError: a file would be overwritten. The message names it and both flags.
    """
    users = {
        os.path.realpath(path): name for name, paths in inputs.items() for path in paths
    }
    for name, paths in outputs.items():
        for path in paths:
            user = users.get(os.path.realpath(path))
            users[os.path.realpath(path)] = name
            if user is not None:
                whose = "given twice" if user == name else f"also the file of --{user}"
                raise OptionError(
                    f"--{name}: {path} is {whose} and would be overwritten; choose "
                    "another name."
                )


def _declaration(
    options_class: type[Options], field: dataclasses.Field, annotation: Any
) -> Declaration:
    alternatives = [annotation]
    if isinstance(annotation, types.UnionType):
        alternatives = [kind for kind in annotation.__args__ if kind is not type(None)]
    kind = typing.get_origin(alternatives[0]) or alternatives[0]
    item_kind = typing.get_args(alternatives[0])[0] if kind is tuple else kind
    return Declaration(
        name=field.name,
        kind=kind,
        item_kind=item_kind,
        is_optional=alternatives != [annotation],
        default=field.default,
        **_metadata(options_class, field.name),
    )


def _metadata(options_class: type[Options], name: str) -> dict[str, Any]:
    """Returns what is declared of an option, by the most derived class that sets it."""
    names = ("help", "choices", "minimum", "maximum", "group", "on_resume", "is_path")
    values: dict[str, Any] = {**dict.fromkeys(names), "is_repeated": False}
    for declaring_class in reversed(options_class.__mro__):
        attributes = vars(declaring_class)
        if name not in attributes.get("__annotations__", ()):
            continue
        declared = dict(attributes["__dataclass_fields__"][name].metadata)
        declared["group"] = declared.get("group") or attributes.get("flag_group")
        values |= {k: v for k, v in declared.items() if v is not None}
        values.setdefault("introduced_by", declaring_class)
    values["group"] = values["group"] or TASK_AND_DATA
    if values["on_resume"] is None:
        is_free = values["group"] in _FREE_GROUPS
        values["on_resume"] = FREE if is_free else REFUSED
    if values["is_path"] is None:
        values["is_path"] = name.endswith(("_file", "_dir"))
    return values


def _parse_item(declaration: Declaration, text: str) -> Any:
    kind = declaration.item_kind
    if kind is str:
        return text
    if kind is bool:
        values = {"true": True, "1": True, "false": False, "0": False}
        if text.lower() not in values:
            raise _error(declaration, "true or false", text)
        return values[text.lower()]
    try:
        return kind(text)
    except ValueError:
        raise _error(declaration, _NAMES[kind], text) from None


def _converted(declaration: Declaration, value: Any) -> Any:
    if value is None and declaration.is_optional:
        return None
    if declaration.kind is not tuple:
        return _converted_item(declaration, value)
    if isinstance(value, str | os.PathLike):
        return parse(declaration, os.fspath(value))
    if not isinstance(value, list | tuple):
        raise _error(declaration, f"a list of {_NAMES[declaration.item_kind]}", value)
    return tuple(_converted_item(declaration, item) for item in value)


def _converted_item(declaration: Declaration, value: Any) -> Any:
    kind = declaration.item_kind
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if kind is float and type(value) is int:
        return float(value)
    # Python counts bool as an int, but max_seq_length=True is a mistake.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _error(declaration, _NAMES[kind], value)
    return value


def _check_limits(declaration: Declaration, value: Any) -> None:
    if value is None:
        return
    if declaration.default is REQUIRED and value in ("", ()):
        raise _error(declaration, "a value", value)
    for item in value if declaration.kind is tuple else (value,):
        if declaration.choices is not None and item not in declaration.choices:
            names = ", ".join(str(choice) for choice in declaration.choices)
            raise _error(declaration, f"one of {names}", item)
        # `not >=` also refuses NaN.
        if declaration.minimum is not None and not item >= declaration.minimum:
            raise _error(declaration, f"at least {declaration.minimum}", item)
        if declaration.maximum is not None and not item <= declaration.maximum:
            raise _error(declaration, f"at most {declaration.maximum}", item)


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _error(declaration: Declaration, expected: str, got: object) -> OptionError:
    return OptionError(flag=declaration.name, got=got, expected=expected)
