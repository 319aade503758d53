"""A checkpoint with some of its encoder's layers.

A model with fewer layers is faster in proportion, and fine-tuning recovers most of what
it loses. The lowest layers are the best start without a teacher (Sajjad et al.
2020, "On the Effect of Dropping Layers of Pre-trained Transformer Models").
DistilBERT, which is trained with one, begins with every second layer (Sanh et al.
2019).
"""

import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from bert_tf.checkpoints import source as source_module

_LAYER = re.compile(r"(bert/encoder/layer_)(\d+)(/.*)")


def cut_source(
    source: source_module.Source, layers: Sequence[int]
) -> source_module.Source:
    """Returns a source with some layers, which are numbered again from 0.

    Args:
        source: with a configuration.
        layers: indices of the layers in ascending order; 0 is the lowest layer.

    Raises:
        ValueError: the source has no configuration, or lacks a layer.
    """
    config = source.required_config()
    if layers[-1] >= config.num_hidden_layers:
        raise ValueError(
            f"--keep_layers={','.join(map(str, layers))}, but the highest layer of "
            f"{source.path} is {config.num_hidden_layers - 1}; the lowest is 0."
        )
    own_names = {}  # Name with the new index -> name in the source.
    for name in source.shapes:
        match = _LAYER.fullmatch(name)
        if match is None:
            own_names[name] = name
        elif int(match[2]) in layers:
            own_names[f"{match[1]}{layers.index(int(match[2]))}{match[3]}"] = name
    new_names = {own_name: name for name, own_name in own_names.items()}

    def read_each(wanted: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
        for own_name, weight in source.read_each([own_names[name] for name in wanted]):
            yield new_names[own_name], weight

    note = (
        f"kept {len(layers)} of {config.num_hidden_layers} layers "
        f"({', '.join(map(str, layers))}); fine-tune the model again before you use it"
    )
    return dataclasses.replace(
        source,
        shapes={name: source.shapes[own_name] for name, own_name in own_names.items()},
        read_each=read_each,
        config=dataclasses.replace(config, num_hidden_layers=len(layers)),
        own_names={
            name: source.own_names.get(own_name, own_name)
            for name, own_name in own_names.items()
        },
        notes=(*source.notes, note),
    )
