import dataclasses
import math
import pathlib
import pickle

import pytest

from bert_tf import options as options_module
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PackOptions(options_module.Options):
    """Packs text."""

    input_file: tuple[str, ...] = option(help="Text files.")
    vocab_file: str = option(help="Vocabulary.")
    max_seq_length: int = option(128, help="Length.", minimum=1, maximum=512)
    learning_rate: float = option(5e-5, help="Rate.", minimum=0.0)
    dtype: str = option("float32", help="Type.", choices=("float32", "bfloat16"))
    do_train: bool = option(False, help="Whether to train.")
    init_checkpoint: str | None = option(None, help="Weights to begin with.")
    max_steps: int | None = option(None, help="Stop after.", minimum=1)
    layers: tuple[int, ...] = option((-1, -2), help="Layers.", maximum=-1)
    text: tuple[str, ...] = option((), help="Texts.", repeated=True)


def _pack_options(**changes):
    return PackOptions(**{"input_file": "a", "vocab_file": "v", **changes})


def test_values_come_into_their_declared_kind():
    record = _pack_options(
        input_file=["a", pathlib.Path("b/c")],
        vocab_file=pathlib.Path("v.txt"),
        learning_rate=1,
        layers="-1,-4",
        text="One, with a comma.",
    )
    assert record.text == ("One, with a comma.",)
    assert record.input_file == ("a", "b/c")
    assert record.vocab_file == "v.txt"
    assert isinstance(record.learning_rate, float)
    assert record.layers == (-1, -4)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"max_seq_length": 0}, "--max_seq_length: expected at least 1, got 0."),
        (
            {"max_seq_length": "8"},
            "--max_seq_length: expected a whole number, got '8'.",
        ),
        (
            {"max_seq_length": True},
            "--max_seq_length: expected a whole number, got True.",
        ),
        (
            {"learning_rate": math.nan},
            "--learning_rate: expected at least 0.0, got nan.",
        ),
        ({"dtype": "int8"}, "--dtype: expected one of float32, bfloat16, got 'int8'."),
        ({"do_train": "no"}, "--do_train: expected true or false, got 'no'."),
        ({"vocab_file": None}, "--vocab_file: expected text, got None."),
        ({"input_file": " , "}, "--input_file: expected a value, got ()."),
        ({"input_file": 3}, "--input_file: expected a list of text, got 3."),
        ({"layers": (-1, 0)}, "--layers: expected at most -1, got 0."),
    ],
)
def test_a_wrong_value_is_refused_with_flag_and_expectation(changes, sentence):
    with pytest.raises(options_module.OptionError) as raised:
        _pack_options(**changes)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    "name, text, value",
    [
        ("max_seq_length", "384", 384),
        ("learning_rate", "2e-5", 2e-5),
        ("do_train", "True", True),
        ("init_checkpoint", "", None),  # As 2018's --init_checkpoint= meant.
        ("vocab_file", "a,b", "a,b"),  # No list here.
        ("input_file", "a, b,,c*", ("a", "b", "c*")),
        ("layers", "-1,-2,-3", (-1, -2, -3)),
    ],
)
def test_parse_reads_what_the_command_line_gives(name, text, value):
    declared = {d.name: d for d in options_module.declarations(PackOptions)}
    assert options_module.parse(declared[name], text) == value


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceOptions(options_module.Options):
    flag_group = "devices"

    device: str = option("auto", help="Device.")
    dry_run: bool = option(False, help="Plan.", group="advanced")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions(DeviceOptions):
    """Runs."""

    device: str = "cpu"  # Only the default changes.
    task_name: str = option(help="Task.")


def test_the_help_group_comes_from_the_option_or_the_class_that_declares_it():
    declared = options_module.declarations(RunOptions)
    assert {d.name: (d.group, d.introduced_by) for d in declared} == {
        "device": ("devices", DeviceOptions),
        "dry_run": ("advanced", DeviceOptions),
        "task_name": ("what to do and on which data", RunOptions),
    }
    assert (declared[0].default, declared[0].help) == ("cpu", "Device.")


def test_an_option_may_be_a_plain_field():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Plain(options_module.Options):
        size: int = 3

    [declared] = options_module.declarations(Plain)
    assert (declared.default, declared.help, declared.is_path) == (3, None, False)


def test_an_error_carries_what_it_is_about():
    with pytest.raises(options_module.OptionError) as raised:
        _pack_options(max_seq_length=0)
    error = pickle.loads(pickle.dumps(raised.value))  # Worker processes return errors.
    facts = (error.flag, error.got, error.expected)
    assert facts == ("max_seq_length", 0, "at least 1")
    assert options_module.OptionError("--a requires --b.").flag is None
