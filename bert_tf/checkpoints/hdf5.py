"""Opens HDF5 files, and refuses values that are stored in other files.

HDF5 can take values from any file that the process may read. As weights, they would be
written out by the next conversion.
"""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import h5py

from bert_tf import files
from bert_tf.checkpoints import companion_files

_MAX_OBJECTS = 100_000  # A BERT of 1,000 layers has fewer.


@contextlib.contextmanager
def opened(path: str, local: str | None = None) -> Iterator[Any]:
    """Yields the open `h5py.File`; errors name `path`.

    Args:
        path: of the file, or of an archive with it.
        local: a local copy of the file; None: it is at `path`.

    Raises:
        OSError: there is no such file.
        ValueError: it is damaged, a value is in another file, or there are too many
            objects.
    """
    with contextlib.ExitStack() as stack:
        if local is None:
            files.open_file(path, "rb").close()  # Raises an error if there is none.
            local = stack.enter_context(companion_files.local_copy(path, ".h5"))
        try:
            weights = stack.enter_context(h5py.File(local, "r"))
        except (OSError, RuntimeError, ValueError) as error:
            raise companion_files.damaged(path, error) from None
        try:
            _check_stored(weights, path)
            yield weights
        except (OSError, RuntimeError) as error:
            raise companion_files.damaged(path, error) from None


def data_sets(weights: Any) -> dict[str, Any]:
    """Returns {path: dataset} of an open file. Links are not followed."""
    by_path: dict[str, Any] = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset):
            by_path[name] = node

    weights.visititems(visit)
    return by_path


def _check_stored(weights: Any, path: str) -> None:
    """Refuses links, virtual datasets and external storage."""
    counter = itertools.count(1)

    def visit(name: str, node: Any) -> None:
        if next(counter) > _MAX_OBJECTS:
            raise ValueError(
                f"{path} has more than {_MAX_OBJECTS:,} objects; expected the weights "
                "of a BERT."
            )
        refers = False
        if isinstance(node, h5py.Dataset):
            refers = node.is_virtual or bool(node.external)
        elif isinstance(node, h5py.Group):
            links = (node.get(member, getlink=True) for member in node)
            refers = any(isinstance(link, h5py.ExternalLink) for link in links)
        if refers:
            raise ValueError(
                f"{path}: {name} refers to values in another file; expected all "
                "weights in this one."
            )

    visit("/", weights)
    weights.visititems(visit)
