"""Options records: every option of a tool once, with default, meaning and limits.

The command line's flags are made from these records, and the same records are what
Python callers fill in, so that both are checked by the same code:

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
from typing import Any
from typing import ClassVar

# The default of an option that must be given.
REQUIRED = dataclasses.MISSING

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


class OptionError(ValueError):
    """An option has a value that it cannot have; the message names its flag."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Declaration:
    """What an options record says about one of its options."""

    name: str  # As in the record, and after -- on the command line.
    kind: type  # str, int, float, bool, or tuple for a comma list.
    item_kind: type  # Kind of a tuple's items; else the same as `kind`.
    is_optional: bool  # Whether None is a value.
    default: Any  # REQUIRED where there is none.
    help: str  # One or two sentences.
    choices: tuple | None  # The values allowed, or None for all.
    minimum: float | None  # The smallest value allowed.
    maximum: float | None  # The largest value allowed.
    is_repeated: bool  # Whether the flag is given once for each item of a tuple.
    group: str  # Heading of `--help` that the flag is listed under.
    introduced_by: type  # The base-most class that declares the option.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of all options records. Validates its values on construction.

    A subclass may set `flag_group` to the `--help` group of the options that it
    declares itself. Subclasses do not inherit it. An option that is declared again,
    for example with another default, keeps its group.
    """

    flag_group: ClassVar[str] = TASK_AND_DATA

    def __post_init__(self):
        validate(self)


def option(
    default=REQUIRED,
    *,
    help,
    choices=None,
    minimum=None,
    maximum=None,
    repeated=False,
    group=None,
):
    """Returns a dataclass field that declares an option.

    Args:
        default: its value when it is not given; `REQUIRED` when it must be.
        help: what it means, for `--help`.
        choices: tuple of the values allowed, or None.
        minimum: the smallest number allowed, or None.
        maximum: the largest number allowed, or None.
        repeated: for a tuple whose items may contain commas: the flag is given once
            for each item.
        group: one of `GROUPS`; default: the `flag_group` of the declaring class.

    Returns:
        A field of type str, int, float, bool, `str | None`, `int | None`,
        `float | None`, or a tuple of any length of str, int or float.
    """
    limits = {"choices": choices, "minimum": minimum, "maximum": maximum}
    metadata = {"help": help, "is_repeated": repeated, "group": group, **limits}
    return dataclasses.field(default=default, metadata=metadata)


def declarations(options_class) -> tuple[Declaration, ...]:
    """Returns what an options record declares, base classes' options first."""
    annotations = typing.get_type_hints(options_class)
    return tuple(
        _declaration(options_class, field, annotations[field.name])
        for field in dataclasses.fields(options_class)
    )


def parse(declaration: Declaration, text: str):
    """Returns the value that text on the command line stands for.

    Raises:
        OptionError: the text is no number where one is expected.
    """
    if declaration.is_optional and text == "":
        return None
    if declaration.kind is tuple and declaration.is_repeated:
        return (_parse_item(declaration, text),)
    if declaration.kind is tuple:
        items = [item.strip() for item in text.split(",")]
        return tuple(_parse_item(declaration, item) for item in items if item)
    return _parse_item(declaration, text)


def validate(record) -> None:
    """Checks every option of a record, and brings it into its declared kind.

    A comma list given as a string becomes a tuple, a path a string, an int where a
    float is declared a float.

    Raises:
        OptionError: a value is of another kind, too small, too large, or none of the
            choices; the message names the flag, what was got and what was expected.
    """
    for declaration in declarations(type(record)):
        value = _converted(declaration, getattr(record, declaration.name))
        _check_limits(declaration, value)
        # The record is frozen, and this is still a part of making it.
        object.__setattr__(record, declaration.name, value)


def check_not_overwritten(outputs, inputs) -> None:
    """Checks that no file is written that is read too, or that is written twice.

    Args:
        outputs: name of an option -> paths (no globs) that it has the tool write.
        inputs: the same for what is read. Links and `./` make no difference.

    Raises:
        OptionError: a file is overwritten; the message names it and both flags.
    """
    users = {
        os.path.realpath(path): name for name, paths in inputs.items() for path in paths
    }
    for name, paths in outputs.items():
        for path in paths:
            user = users.setdefault(os.path.realpath(path), name)
            if user != name:
                raise OptionError(
                    f"--{name}: {path} is the file of --{user} too, and would be "
                    "overwritten; give another name."
                )


def _declaration(options_class, field, annotation):
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
        introduced_by=_declaring_classes(options_class, field.name)[-1],
        **{**field.metadata, "group": _group(options_class, field.name)},
    )


def _declaring_classes(options_class, name):
    """Returns the classes that declare an option, most derived first."""
    return [
        c for c in options_class.__mro__ if name in vars(c).get("__annotations__", ())
    ]


def _group(options_class, name):
    """Returns the group of the most derived declaration that names one."""
    for declaring_class in _declaring_classes(options_class, name):
        field = declaring_class.__dataclass_fields__[name]
        group = field.metadata["group"] or vars(declaring_class).get("flag_group")
        if group in GROUPS:
            return group
        if group is not None:
            raise ValueError(
                f"Option {name!r} has the group {group!r}; expected one of "
                f"{', '.join(GROUPS)}."
            )
    return TASK_AND_DATA


def _parse_item(declaration, text):
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


def _converted(declaration, value):
    if value is None and declaration.is_optional:
        return None
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if declaration.kind is not tuple:
        return _converted_item(declaration, value)
    if isinstance(value, str):
        return parse(declaration, value)
    if not isinstance(value, list | tuple):
        raise _error(declaration, f"a list of {_NAMES[declaration.item_kind]}", value)
    return tuple(_converted_item(declaration, item) for item in value)


def _converted_item(declaration, value):
    kind = declaration.item_kind
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if kind is float and type(value) is int:
        return float(value)
    # bool is an int to Python, and not to whoever writes max_seq_length=True.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _error(declaration, _NAMES[kind], value)
    return value


def _check_limits(declaration, value):
    if value is None:
        return
    if declaration.default is REQUIRED and value in ("", ()):
        raise _error(declaration, "a value", value)
    for item in value if declaration.kind is tuple else (value,):
        if declaration.choices is not None and item not in declaration.choices:
            names = ", ".join(str(choice) for choice in declaration.choices)
            raise _error(declaration, f"one of {names}", item)
        # Written as `not >=` so that NaN is refused too.
        if declaration.minimum is not None and not item >= declaration.minimum:
            raise _error(declaration, f"at least {declaration.minimum}", item)
        if declaration.maximum is not None and not item <= declaration.maximum:
            raise _error(declaration, f"at most {declaration.maximum}", item)


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _error(declaration, expected, got):
    return OptionError(f"--{declaration.name}: expected {expected}, got {got!r}.")
