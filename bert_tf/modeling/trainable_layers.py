"""Which layers of a model are trainable, as its saved configuration says it."""

from collections.abc import Mapping
from typing import Any


def differing(model: Any) -> dict[str, bool]:
    """Returns {path: whether it is trainable} of layers unlike the one around them."""
    flags = {path: layer.trainable for path, layer in by_path(model).items()}
    return {
        path: flag
        for path, flag in flags.items()
        if flag != (not path or flags[path.rpartition("/")[0]])
    }


def assign(model: Any, differing_flags: Mapping[str, bool]) -> None:
    """Sets which layers are trainable, given what `differing` returned."""
    flags: dict[str, bool] = {}
    for path, layer in by_path(model).items():
        outer_flag = not path or flags[path.rpartition("/")[0]]
        flags[path] = differing_flags.get(path, outer_flag)
        # With TensorFlow, Keras ignores an assignment that does not change a layer's
        # own value, although layers inside may have another one.
        layer.trainable = not flags[path]
        layer.trainable = flags[path]


def by_path(model: Any) -> dict[str, Any]:
    """Returns {path below the model: layer}, outer layers first; "" is the model."""
    layers = {"": model}
    unvisited = [""]
    while unvisited:
        path = unvisited.pop()
        for layer in layers[path]._layers:
            name = f"{path}/{layer.name}".removeprefix("/")
            layers[name] = layer
            unvisited.append(name)
    return layers
