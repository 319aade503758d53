"""The format "saved_model": BERT of TF Hub and Kaggle, series 1 to 4. Read only.

A SavedModel is parsed and never loaded: its weights are a checkpoint, their shapes show
the sizes, and its functions show activation and epsilon without being run. So
TensorFlow Text's ops do not have to be registered, and no foreign code is executed.
"""

import os

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import garden_names
from bert_tf.checkpoints.tf2 import object_graph
from bert_tf.checkpoints.tf2 import saved_model_graph

_EXPORT_ASSETS = "assets.extra"  # Of an export that answers texts; see `serving`.
# Prefix of variable names in modules of TensorFlow 1.
_MODULE_SCOPE = "module/"


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is the folder of a SavedModel."""
    return files.exists(os.path.join(os.fspath(path), saved_model_graph.MODEL_FILE))


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a SavedModel.

    Args:
        path: the folder with saved_model.pb.

    Raises:
        OSError: a file of the SavedModel is missing.
        ValueError: it is damaged, or not a BERT.
    """
    path = os.fspath(path)
    if files.exists(os.path.join(path, _EXPORT_ASSETS, companion_files.TASK_FILE)):
        raise ValueError(
            f"{path} was written by export_saved_model, and no checkpoint can be read "
            "from it; pass the run or the checkpoint that was exported, or query the "
            "export with query_saved_model."
        )
    meta_graph = saved_model_graph.read(path)
    prefix = os.path.join(path, "variables", "variables")
    if not files.exists(f"{prefix}.index"):
        raise ValueError(
            f"{path} is not a BERT: it is a SavedModel without variables, such as a "
            "text preprocessor; pass the SavedModel of the encoder."
        )
    computed = saved_model_graph.computation(meta_graph)
    weights = _weights(prefix)
    hidden_size = weights.shapes[checkpoint_names.WORD_EMBEDDINGS][1]
    config, notes = object_graph.infer_config(
        weights,
        num_heads=computed.size_per_head and hidden_size // computed.size_per_head,
        hidden_act=computed.hidden_act,
        layer_norm_epsilon=computed.layer_norm_epsilon,
    )
    if len({computed.head_act, computed.hidden_act} - {None}) > 1:
        notes.append(
            f"its masked-word head computes {computed.head_act}, its encoder "
            f"{computed.hidden_act}; a configuration has one activation, the encoder's"
        )
    do_lower_case = computed.do_lower_case
    if do_lower_case is None:
        value = object_graph.read_value(prefix, "do_lower_case")
        do_lower_case = None if value is None else bool(value)
    return source_module.Source(
        path=path,
        format="saved_model",
        shapes=weights.shapes,
        read_each=weights.read_each,
        head=checkpoint_heads.head_of(weights.shapes),
        config=config,
        text=text_encoding.TextEncoding(
            do_lower_case=do_lower_case,
            vocabulary=companion_files.read_vocabulary(os.path.join(path, "assets")),
        ),
        unmapped=weights.named.unmapped,
        optimizer=weights.optimizer,
        own_names=weights.named.own_names,
        notes=(*weights.named.notes, *notes),
    )


def _weights(prefix: str) -> object_graph.Weights:
    stored = bundle.read_names_and_shapes(prefix)
    if object_graph.GRAPH in stored:
        return object_graph.open_weights(prefix)
    # A module of TensorFlow 1: series 1 and 2 have the release's own names.
    keys = {key.removeprefix(_MODULE_SCOPE): key for key in stored}
    if checkpoint_names.WORD_EMBEDDINGS not in keys:
        raise ValueError(
            f"{prefix} has no BERT encoder: expected variables such as "
            f"{checkpoint_names.WORD_EMBEDDINGS}, got {min(stored, default='none')}."
        )
    own_names = {name: key for name, key in keys.items() if name != key}
    return object_graph.Weights(
        prefix=prefix,
        named=garden_names.Named(keys=keys, own_names=own_names),
        shapes={name: tuple(stored[key]) for name, key in keys.items()},
    )
