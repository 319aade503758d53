"""The format "model_garden": TensorFlow 2 object checkpoints of tf-models-official.

They hold weights and no sizes, but query kernels are [H, N, D], so only activation,
epsilon and dropout are not to be seen. A `bert_config.json` beside the weights says
them. The format is read, not written.

Shape letters: H hidden, N heads, D = H / N.
"""

import os

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import object_graph
from bert_tf.modeling import numerics

NAME = "model_garden"
_HIDDEN_ACT = "gelu"


def is_at(path):
    """Returns whether a path is that of an object checkpoint, or of one's folder."""
    try:
        return object_graph.GRAPH in bundle.read_names_and_shapes(os.fspath(path))
    except (OSError, ValueError):
        return False


def open_source(path):
    """Returns the `Source` of a checkpoint, with what lies beside it.

    Args:
        path: a prefix such as "uncased_L-12_H-768_A-12/bert_model.ckpt-1", or a folder
            with a `checkpoint` file, whose latest checkpoint is taken.

    Raises:
        OSError: there is no such checkpoint.
        ValueError: it is damaged, or holds no BERT; or a file beside it is bad.
    """
    prefix = bundle.resolve(os.fspath(path))
    if object_graph.GRAPH not in bundle.read_names_and_shapes(prefix):
        raise ValueError(
            f"{prefix} is no object checkpoint of TensorFlow 2: it has no graph of "
            "objects; if it is of 2018, its format is bert."
        )
    weights = object_graph.open_weights(prefix)
    folder = os.path.dirname(prefix) or "."
    config = object_graph.config_beside(folder)
    notes = list(weights.notes)
    if config is None:
        config = object_graph.config_of(
            weights,
            hidden_act=_HIDDEN_ACT,
            layer_norm_epsilon=numerics.LAYER_NORM_EPSILON,
        )
        notes += _notes_without_config(config)
    return source_module.Source(
        path=prefix,
        format=NAME,
        shapes=weights.shapes,
        read_each=weights.read_each,
        head=checkpoint_heads.head_of(weights.shapes),
        config=config,
        vocabulary=object_graph.vocabulary_beside(folder),
        unmapped=weights.unmapped,
        optimizer=weights.optimizer,
        own_names=weights.own_names,
        notes=tuple(notes),
    )


def _notes_without_config(config):
    if config is None:
        yield "the number of attention heads is not to be seen; give --bert_config_file"
        return
    yield (
        f"there is no bert_config.json beside it: hidden_act is taken as {_HIDDEN_ACT} "
        f"and layer_norm_epsilon as {config.layer_norm_epsilon:g}, the Model Garden's "
        "own; give --bert_config_file where that is wrong"
    )
    yield object_graph.dropout_note(config)
