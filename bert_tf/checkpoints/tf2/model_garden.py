"""The format "model_garden": object-based checkpoints of tf-models-official.

They contain weights and no configuration. Shapes show all sizes, because query kernels
are [H, N, D]; activation, epsilon and dropout come from a `bert_config.json` beside the
weights, or are assumed. The format is read but not written.

Shape letters: H hidden, N heads, D = H / N.
"""

import os
from collections.abc import Iterator

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import object_graph
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics

NAME = "model_garden"
_HIDDEN_ACT = "gelu"


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is an object-based checkpoint or the folder of one."""
    try:
        return object_graph.GRAPH in bundle.read_names_and_shapes(os.fspath(path))
    except (OSError, ValueError):
        return False


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a checkpoint and the files beside it.

    Args:
        path: a prefix such as "uncased_L-12_H-768_A-12/bert_model.ckpt-1", or a folder
            with a `checkpoint` file, whose latest checkpoint is read.

    Raises:
        OSError: there is no such checkpoint.
        ValueError: it, or a file beside it, is damaged, or it is not a BERT.
    """
    prefix = bundle.resolve(os.fspath(path))
    if object_graph.GRAPH not in bundle.read_names_and_shapes(prefix):
        raise ValueError(
            f"{prefix} is not an object-based checkpoint of TensorFlow 2: it has no "
            "object graph; a checkpoint of 2018 has the format bert."
        )
    weights = object_graph.open_weights(prefix)
    folder = os.path.dirname(prefix) or "."
    config = companion_files.read_config(folder)
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
        text=text_encoding.TextEncoding(
            vocabulary=companion_files.read_vocabulary(folder)
        ),
        unmapped=weights.unmapped,
        optimizer=weights.optimizer,
        own_names=weights.own_names,
        notes=tuple(notes),
    )


def _notes_without_config(
    config: config_module.BertConfig | None,
) -> Iterator[str]:
    if config is None:
        yield "the number of attention heads is unknown; pass --bert_config_file"
        return
    yield (
        "there is no bert_config.json beside it: hidden_act is assumed to be "
        f"{_HIDDEN_ACT} and layer_norm_epsilon {config.layer_norm_epsilon:g}, the "
        "Model Garden's defaults; pass --bert_config_file if that is wrong"
    )
    yield object_graph.dropout_note(config)
