"""Lets tools import TensorFlow and Keras quickly and quietly, and then run quickly.

Importing the library without a tool changes nothing in the process.
"""

import atexit
import contextlib
import gc
from collections.abc import Iterator

from bert_tf import import_hooks
from bert_tf import startup_lines

# New objects until the youngest generation is collected, and collections of a
# generation until the next older one is collected. Python 3.12's are 700, 10 and 10.
_GARBAGE_THRESHOLDS = (10_000, 10, 50)
# TensorFlow and Keras import these packages if they are installed, for features that no
# tool uses: converting JAX functions to LiteRT, wrappers for scikit-learn, data frames
# and sparse matrices as inputs of `Model.fit`, plots, editing of weights in notebooks.
# Without them, the import takes 1.9 instead of 3.2 seconds.
_HIDDEN_PACKAGES = ("IPython", "jax", "matplotlib", "pandas", "scipy", "sklearn")


@contextlib.contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Lets Python's garbage collector run less often within the block.

    It searches for reference cycles, which are rare in the examples and features of a
    task. With Python's own thresholds, it scans a growing list of them many times:
    reading the 88,000 training questions of SQuAD 1.1 took a quarter longer.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextlib.contextmanager
def quick_and_quiet() -> Iterator[None]:
    """If the block imports TensorFlow or Keras, it does so quickly and quietly.

    The backend of Keras must be TensorFlow, because Keras does not see JAX.
    """
    with (
        import_hooks.importing_within("tensorflow", startup_lines.hidden),
        import_hooks.importing_within("tensorflow", _quickly),
        import_hooks.importing_within("keras", _quickly),
    ):
        yield


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Speeds up the imports of the block, and the end of the process.

    TensorFlow and Keras consist of 800,000 objects, nearly all of which live until the
    process ends. Python's garbage collector would scan them many times during the
    imports, and once more at the end; each takes about a second. Reference cycles that
    exist at the end of the block are never collected (0.5 % of the objects), and none
    are collected at the end of the process. What must happen there, such as closing
    files, therefore needs a `with` block or `weakref.finalize`, not `__del__`.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        atexit.register(gc.freeze)
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def _quickly():
    importers = ("tensorflow", "keras")
    with (
        without_garbage_collection(),
        import_hooks.without_packages(_HIDDEN_PACKAGES, importers),
    ):
        yield
