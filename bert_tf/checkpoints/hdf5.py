"""The check of HDF5 files: all their values are in the file itself.

HDF5 can take values from any other file that the process may read. As weights, they
would be written out by the next conversion.
"""

from typing import Any

import h5py

_MAX_OBJECTS = 100_000  # A BERT of 1,000 layers has fewer.


def check_stored(weights: Any, path: str) -> None:
    """Refuses links, virtual datasets and external storage.

    Args:
        weights: an open `h5py.File`.
        path: of the file, for messages.

    Raises:
        ValueError: a value is in another file, or there are too many objects.
    """
    num_objects = 0

    def visit(name: str, node: Any) -> None:
        nonlocal num_objects
        refers = False
        num_objects += 1
        if num_objects > _MAX_OBJECTS:
            raise ValueError(
                f"{path} has more than {_MAX_OBJECTS:,} objects; expected the weights "
                "of a BERT."
            )
        if isinstance(node, h5py.Dataset):
            refers = node.is_virtual or bool(node.external)
        elif isinstance(node, h5py.Group):
            links = [node.get(member, getlink=True) for member in node]
            refers = any(isinstance(link, h5py.ExternalLink) for link in links)
        if refers:
            raise ValueError(
                f"{path}: {name} refers to values in another file; expected all "
                "weights in this one."
            )

    visit("/", weights)
    weights.visititems(visit)
