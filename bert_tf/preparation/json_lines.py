"""Reads files with one JSON object per line."""

import json
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf import files
from bert_tf.preparation import archives
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import input_units
from bert_tf.preparation import lines as lines_module

_BLOCK_BYTES = 1 << 22


def read(
    source: input_units.Source,
    counts: counts_module.ReadCounts,
    on_bytes: Callable[[int], None],
) -> Iterator[tuple[dict, Callable[[], str]]]:
    """Yields (fields, a function that names file and line) for each object.

    Args:
        source: the file. Of a part of a file, the lines that start in it are read.
        counts: receives the number of bytes that are not UTF-8.
        on_bytes: called with the number of bytes that were read since the last call.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not a JSON object; the message names file and line.
    """
    decoder = lines_module.Decoder(source.name, counts)
    for position, number, data in _owned_lines(source, on_bytes):

        def line_number(position=position, number=number):
            return _line_number(source, position, number)

        def place(line_number=line_number):
            return f"{source.name}:{line_number()}"

        line = decoder.decode(data, line_number).removeprefix("\ufeff")
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{place()}: invalid JSON ({error}); expected one object per line."
            ) from None
        if not isinstance(fields, dict):
            raise ValueError(
                f"{place()}: expected one JSON object per line, got {_kind(fields)}."
            )
        yield fields, place


def field_text(fields: dict, name: str, place: Callable[[], str]) -> str:
    """Returns the text in a field; dots in the name lead into nested objects.

    Raises:
        ValueError: the field does not exist or does not hold text.
    """
    value = fields
    for part in [name] if name in fields else name.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(map(str, fields)) or "none"
            raise ValueError(
                f"{place()}: there is no field {name!r}; the fields are {known}."
            )
        value = value[part]
    if not isinstance(value, str):
        raise ValueError(
            f"{place()}: expected text in the field {name!r}, got {_kind(value)}."
        )
    return value


def _owned_lines(source, on_bytes):
    """Yields (first byte, line number, bytes) for each line of the source's part."""
    # Starts one byte early: a line starts at `start` if a line break precedes it.
    position, number = max(source.start - 1, 0), 1
    with archives.open_stream(
        source.path, member=source.member, start=position, on_bytes=on_bytes
    ) as stream:
        for block in lines_module.blocks_of_lines(stream, source.name):
            for line in block.removesuffix(b"\n").split(b"\n"):
                if source.end is not None and position >= source.end:
                    return
                if position >= source.start:
                    yield position, number, line
                position += len(line) + 1
                number += 1


def _line_number(source, position, number):
    if source.start == 0:
        return number
    count = 1
    with files.open_file(source.path, "rb") as file:
        while position > 0 and (data := file.read(min(position, _BLOCK_BYTES))):
            count += data.count(b"\n")
            position -= len(data)
    return count


def _kind(value):
    names = {dict: "an object", list: "a list", str: "text", type(None): "null"}
    return names.get(type(value), f"{value!r:.40}")
