"""What this process has on its machine: processor cores, and optional packages."""

import importlib
import os
from typing import Any


def num_cores() -> int:
    """Returns how many cores this process may use.

    On Linux, these can be fewer than the machine has (`taskset`, job schedulers). The
    CPU quota of a container is not considered.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package(name: str, *, extra: str, needed_for: str) -> Any:
    """Returns a module of a package that only some uses need.

    Args:
        name: of the module, to import it.
        extra: the extra of this package (setup.py) that installs it.
        needed_for: begins the message, such as "Plotting".

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{needed_for} needs {error.name}, which is not installed; run pip install "
            f"'bert_tf[{extra}]'."
        ) from error
