"""The format "model_garden": object-based checkpoints of tf-models-official.

They contain weights and no configuration. Shapes show all sizes, because query kernels
are [H, N, D]; activation, epsilon and dropout come from a `bert_config.json` beside the
weights, or are assumed. The format is read but not written.
"""

import os

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import object_graph


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
    notes: list[str] = []
    config = companion_files.read_config(folder)
    if config is None:
        config, notes = object_graph.infer_config(weights)
    return source_module.Source(
        path=prefix,
        format="model_garden",
        shapes=weights.shapes,
        read_each=weights.read_each,
        head=checkpoint_heads.head_of(weights.shapes),
        config=config,
        text=text_encoding.TextEncoding(
            vocabulary=companion_files.read_vocabulary(folder)
        ),
        unmapped=weights.named.unmapped,
        optimizer=weights.optimizer,
        own_names=weights.named.own_names,
        notes=(*weights.named.notes, *notes),
    )
