"""Counts what a compiled TPU program reads from and writes to the chip's memory.

XLA's count, "bytes accessed", also has the traffic of the fast memory on the chip
(space 1), and counts a whole array for each slice that is copied from it. Both make it
two to four times too high for a BERT step.
"""

import math
import re

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2}
_BYTES |= {"f32": 4, "s32": 4, "u32": 4, "s64": 8, "u64": 8, "f64": 8}
# "bf16[64,128]{1,0:T(8,128)S(1)}": type, sizes, layout with the memory space.
_ARRAY = re.compile(r"\b(\w+)\[([\d,]*)\](?:\{([^}]*)\})?")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_OPERAND = re.compile(r"%([\w.\-]+)")
_ON_CHIP = re.compile(r"S\([1-9]\d*\)")
# Instructions that move nothing, and ends of copies that were counted at their start.
_FREE = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")


def memory_bytes(program: str) -> int:
    """Returns the bytes that one run of a program moves, both directions added.

    Args:
        program: the text of a compiled HLO module without loops.
    """
    types, total = {}, 0
    for line in program[program.index("\nENTRY") :].splitlines():
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        name, rest = match.groups()
        result, rest = _split_type(rest)
        operation, _, arguments = rest.partition("(")
        types[name] = result
        if operation in _FREE or operation.endswith("-done"):
            continue
        operands = _OPERAND.findall(arguments.partition(")")[0])
        if operation == "slice-start":
            # The result names the whole array, the slice and a counter.
            total += _slice_bytes(result)
        elif operation == "copy-start":
            # The result names the destination and the source.
            total += _array_bytes(result)
        else:
            total += _array_bytes(result)
            total += sum(_array_bytes(types.get(one, "")) for one in operands)
    return total


def _split_type(text):
    """Returns the type at the start of an instruction, and the rest."""
    if not text.startswith("("):
        result, _, rest = text.partition(" ")
        return result, rest
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[: index + 1], text[index + 2 :]
    return text, ""


def _array_bytes(kind):
    """Returns the bytes of all arrays of a type that are in the chip's memory."""
    return sum(
        _size(dtype, sizes)
        for dtype, sizes, layout in _ARRAY.findall(kind)
        if not _ON_CHIP.search(layout)
    )


def _slice_bytes(kind):
    whole, part, *_ = _ARRAY.findall(kind)
    return sum(_size(*part[:2]) for one in (whole, part) if not _ON_CHIP.search(one[2]))


def _size(dtype, sizes):
    return _BYTES.get(dtype, 0) * math.prod(int(n) for n in sizes.split(",") if n)
