"""The lines of metrics.jsonl: strict JSON, with null in place of NaN."""

import json
import logging
from collections.abc import Mapping

from bert_tf import files
from bert_tf import json_values

logger = logging.getLogger(__name__)

NAME = "metrics.jsonl"
# A line has the step, and numbers by name; see `json_values.unexpected`.
_SHAPE = {"step": int, str: int | float | None}


def line(values: Mapping[str, float]) -> str:
    """Returns a line, with its end."""
    return json.dumps(json_values.with_null(values), allow_nan=False) + "\n"


def read(path: str) -> list[dict[str, float]]:
    """Returns the logged dicts, without a last line that a kill cut off.

    Other damaged lines are left out with a warning. Earlier versions wrote NaN.

    Args:
        path: the file. It may be missing.

    Raises:
        OSError: the file cannot be read.
    """
    if not files.exists(path):
        return []
    with files.open_file(path, "rb") as file:
        text = file.read()
    logged = []
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        try:
            values = files.parse_json(line, f"{path}:{number}")
        except ValueError:
            values = None
        if json_values.unexpected(values, _SHAPE) is None:
            logged.append({n: json_values.nan_if_null(v) for n, v in values.items()})
        elif line.endswith(b"\n"):
            logger.warning("%s:%d is damaged; the line is ignored.", path, number)
    return logged
