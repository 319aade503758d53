"""With what a run was made: versions of packages, and the commit of the code."""

import importlib.metadata
import os
import subprocess

_VERSIONS_OF = ("bert_tf", "tensorflow", "tensorflow-text", "keras", "numpy")


def versions():
    """Returns {package: its version, or None where it is not installed}."""
    found = {}
    for name in _VERSIONS_OF:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def commit():
    """Returns the commit of the checkout that runs, or None outside of one."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        done = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
