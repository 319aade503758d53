"""Files with a JSON object a line -> their fields."""

import json
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf import files
from bert_tf.preparation import archives
from bert_tf.preparation import counts as counts_module
from bert_tf.preparation import lines as lines_module
from bert_tf.preparation import sources as sources_module

_BLOCK_BYTES = 1 << 22


def read(
    source: sources_module.Source,
    counts: counts_module.ReadCounts,
    on_bytes: Callable[[int], None],
) -> Iterator[tuple[dict, Callable[[], str]]]:
    """Yields (fields, who tells file and line) of the objects of a source.

    Args:
        source: the file; where it is a part, the lines that start in it.
        counts: bytes that are no UTF-8 are added to it.
        on_bytes: told how many more bytes of the file were read.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is no JSON object; the message has file and line.
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
        except ValueError as error:
            raise ValueError(
                f"{place()}: invalid JSON ({error}); expected an object a line."
            ) from None
        if not isinstance(fields, dict):
            raise ValueError(
                f"{place()}: expected a JSON object a line, got {_kind(fields)}."
            )
        yield fields, place


def text_of(fields: dict, name: str, place: Callable[[], str]) -> str:
    """Returns the text in a field; a name with dots leads into objects in objects.

    Raises:
        ValueError: there is no such field, or it holds no text.
    """
    value = fields
    for part in [name] if name in fields else name.split("."):
        if not isinstance(value, dict) or part not in value:
            known = ", ".join(map(str, fields)) or "none"
            raise ValueError(
                f"{place()}: there is no field {name!r}; the fields are {known}."
            )
        value = value[part]
    if isinstance(value, bytes):  # TensorFlow Datasets has strings as bytes.
        value = value.decode("utf-8", "ignore")
    if not isinstance(value, str):
        raise ValueError(
            f"{place()}: expected text in the field {name!r}, got {_kind(value)}."
        )
    return value


def _owned_lines(source, on_bytes):
    """Yields (first byte, number of the line, bytes) of lines in the source's part."""
    # A line that starts at `start` is known by the line end before it.
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
