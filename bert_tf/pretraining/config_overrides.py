"""Changes of single values of a model's configuration, from the command line."""

import dataclasses
import typing

from bert_tf import options as options_module

# What other flags or files say.
_SAID_ELSEWHERE = {
    "attention": "give --objective",
    "vocab_size": "it is that of the vocabulary, or of --bert_config_file",
}


def apply(config, overrides, *, has_weights=False):
    """Returns a configuration with some values changed.

    Args:
        config: `BertConfig`.
        overrides: sequence of str, each "name=value".
        has_weights: whether the model gets weights of a checkpoint. Then its dropout
            rates alone may be changed: the rest is how those weights came about.

    Raises:
        OptionError: there is no such name or it is not to be changed, it comes twice,
            the value is of another kind, or the configuration refuses it.
    """
    kinds = typing.get_type_hints(type(config))
    changes = {}
    for text in overrides:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in kinds:
            raise _error(
                f"{text!r}, expected NAME=VALUE with one of {', '.join(kinds)}."
            )
        if name in changes:
            raise _error(f"{name} is there twice.")
        if name in _SAID_ELSEWHERE:
            raise _error(f"{name} cannot be changed here; {_SAID_ELSEWHERE[name]}.")
        if has_weights and not name.endswith("_dropout_prob"):
            raise _error(
                f"{name} is what the weights of --init_checkpoint were made with; only "
                "dropout rates can be changed."
            )
        try:
            changes[name] = kinds[name](value)
        except ValueError:
            number = "a whole number" if kinds[name] is int else "a number"
            raise _error(f"{name}={value}, expected {number}.") from None
    try:
        return dataclasses.replace(config, **changes)
    except ValueError as error:
        raise _error(error) from None


def _error(what):
    return options_module.OptionError(f"--config_overrides: {what}")
