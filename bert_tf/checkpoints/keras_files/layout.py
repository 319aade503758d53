"""Where Keras puts a model's weights in its HDF5 files.

Keras calls a weight by the attributes that lead to it, with a number in the end, such
as "bert/layers/pooler/dense/vars/0": nothing of the release's names is in it, and it
is Keras's affair. So a model of the same structure in which every weight is a number
of its own is saved by Keras, and the numbers are looked up.
"""

import os
import re
import tempfile

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.keras_files import archive
from bert_tf.modeling import config as config_module

OPTIMIZER = "optimizer/"
_LAYER = re.compile(r"encoder/encoder_layers/encoder_layer(?:_(\d+))?/")
# Group and attribute in which Keras keeps the name of the saved model.
_ROOT, _NAME = "vars", "name"


def places(kind, num_layers):
    """Returns {release's name: path in the HDF5 file} of a model's weights.

    Args:
        kind: of the head, one of `head.KINDS`.
        num_layers: int, L.
    """
    return _saved_twin(kind, num_layers)[0]


def num_layers_of(paths):
    """Returns how many encoder layers there are among the paths of an HDF5 file."""
    found = [_LAYER.search(path) for path in paths]
    numbers = [int(match[1] or 0) for match in found if match]
    return max(numbers, default=-1) + 1


def kinds_of(path, paths):
    """Returns the kinds of head that a `.weights.h5` may have, the likeliest first.

    Heads that look alike, such as those for classes and for tags, are told apart by
    the model's name, where it is the class's own.

    Args:
        path: the file.
        paths: the paths in it, the optimizer's apart.
    """
    with archive.opened_weights(path) as weights:
        name = weights[_ROOT].attrs.get(_NAME) if _ROOT in weights else None
    others = _outside_the_layers(paths)
    alike = {}
    for kind in checkpoint_heads.KINDS:
        own_places, own_name = _saved_twin(kind, 1)
        if _outside_the_layers(own_places.values()) == others:
            alike[kind] = own_name
    named = [kind for kind, own_name in alike.items() if own_name == name]
    return named or list(alike)


def _outside_the_layers(paths):
    return {path for path in paths if not _LAYER.search(path)}


def _saved_twin(kind, num_layers):
    """Returns places as above, and the name that Keras notes for the model."""
    config = config_module.BertConfig(
        vocab_size=1,
        hidden_size=1,
        num_hidden_layers=num_layers,
        num_attention_heads=1,
        intermediate_size=1,
        max_position_embeddings=1,
        type_vocab_size=1,
    )
    head = checkpoint_heads.head_of(
        {checkpoint_heads.OUTPUT_WEIGHTS: (1, 1)}, kind=kind
    )
    model = checkpoint_heads.create_model(config, head, dtype="float32")
    variables = checkpoint_names.checkpoint_variables(model)
    for number, variable in enumerate(variables.values()):
        variable.assign(np.full(variable.shape, number, "float32"))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"twin{archive.WEIGHTS_SUFFIX}")
        model.save_weights(path)
        for name, array in archive.read_each(path, archive.shapes(path)):
            found[int(array.flat[0])] = name
    return {name: found[i] for i, name in enumerate(variables)}, model.name
