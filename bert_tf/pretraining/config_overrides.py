"""Changes of single values of a model's configuration, from the command line."""

import dataclasses

from bert_tf import options as options_module


def apply(config, overrides):
    """Returns a configuration with some values changed.

    Args:
        config: `BertConfig`.
        overrides: sequence of str, each "name=value".

    Raises:
        OptionError: there is no such name, the value is of another kind, or it is
            refused by the configuration.
    """
    fields = {field.name: field for field in dataclasses.fields(config)}
    changes = {}
    for text in overrides:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in fields:
            raise options_module.OptionError(
                f"--config_overrides: {text!r}, expected NAME=VALUE with one of "
                f"{', '.join(fields)}."
            )
        kind = fields[name].type
        try:
            changes[name] = kind(value)
        except ValueError:
            raise options_module.OptionError(
                f"--config_overrides: {name}={value}, expected "
                f"{'a whole number' if kind is int else 'a number'}."
            ) from None
    try:
        return dataclasses.replace(config, **changes)
    except ValueError as error:
        raise options_module.OptionError(f"--config_overrides: {error}") from None
