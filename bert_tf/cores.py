"""The processor cores of this process."""

import os


def num_available() -> int:
    """Returns how many cores this process may use.

    On Linux, these can be fewer than the machine has (`taskset`, job schedulers). The
    CPU quota of a container is not considered.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
