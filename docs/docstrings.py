"""Prepares docstrings, which are Markdown in Google's style, for Sphinx."""

import re

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_EXAMPLE = re.compile(r"( *)Examples?:$")


def to_restructured_text(app, what, name, value, options, lines):
    """Changes the lines of a docstring in place; called by autodoc.

    Code between single backticks gets double ones. Examples and tables become literal
    blocks.
    """
    found = []
    in_table = False
    for line in lines:
        follows_table = in_table
        # Long rows continue on the next line.
        in_table = line.lstrip().startswith("|") or (in_table and line.strip())
        example = _EXAMPLE.match(line)
        if example:
            indent = example[1]
            found += [f"{indent}.. rubric:: Example", "", f"{indent}::", ""]
        elif in_table:
            if not follows_table:
                indent = line[: len(line) - len(line.lstrip())]
                found += [f"{indent}::", ""]
            found.append(f"    {line}")
        else:
            found.append(_CODE.sub(r"``\1``", line))
    lines[:] = found
