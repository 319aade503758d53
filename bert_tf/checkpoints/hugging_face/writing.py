"""A checkpoint of any format, written as a Hugging Face folder."""

import os

from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.hugging_face import config as config_module
from bert_tf.checkpoints.hugging_face import names
from bert_tf.checkpoints.hugging_face import sentence_layout
from bert_tf.checkpoints.hugging_face import shards
from bert_tf.checkpoints.hugging_face import tokenizer_files


def placement(source):
    """Returns the `Placement` of a source's weights in a Hugging Face folder.

    The classes for masked words, answers and tags have no place for the pooler, which
    none of their outputs needs.

    Args:
        source: `Source`.

    Raises:
        ValueError: the source lacks weights of its model, its configuration, or the
            casing of its vocabulary; or the vocabulary is longer than the table.
    """
    _check(source)
    kind, config = source.head.kind, source.config
    shapes = names.encoder_shapes(config)
    if kind not in names.WITH_POOLER:
        shapes = {
            n: s for n, s in shapes.items() if n not in names.pooler_shapes(config)
        }
    shapes |= names.head_shapes(config, kind, source.head.num_labels)
    missing = [name for name in shapes if name not in source.shapes]
    # transformers makes a new pooler for an encoder without one.
    if kind == "encoder":
        missing = [n for n in missing if n not in names.pooler_shapes(config)]
    if missing:
        raise ValueError(
            f"{source.path} lacks {len(missing)} of the weights of a "
            f"{names.CLASSES[kind]}, such as {missing[0]}; transformers would make "
            "them up."
        )
    return source_module.Placement(
        places={
            name: _name_in_file(name, kind) for name in shapes if name in source.shapes
        },
        without_place=tuple(name for name in source.shapes if name not in shapes),
    )


def write(source, folder, *, max_shard_bytes=shards.MAX_SHARD_BYTES):
    """Writes config.json, model.safetensors, the tokenizer's files, and for encoders
    what makes a text one vector.

    Args:
        source: `Source`. Weights without a place are left out.
        folder: path of an empty folder that exists.
        max_shard_bytes: larger weights are divided, as transformers divides them.

    Raises:
        OSError: a file cannot be written.
        ValueError: as `placement`.
    """
    places = placement(source).places
    release_names = {name_in_file: name for name, name_in_file in places.items()}
    shapes = {
        name_in_file: names.turned_shape(name, source.shapes[name])
        for name_in_file, name in release_names.items()
    }

    def read_each(wanted):
        for name, array in source.read_each([release_names[name] for name in wanted]):
            yield places[name], array.T if names.is_transposed(name) else array

    shards.write(folder, shapes, read_each, max_shard_bytes)
    vocabulary, config = source.vocabulary, source.config
    if vocabulary is not None:
        tokenizer_files.write(
            folder, vocabulary, source.do_lower_case, config.max_position_embeddings
        )
        if source.head.kind == "encoder":
            sentence_layout.write(folder, config, source.pooling)
    pad_id = 0 if vocabulary is None else vocabulary.pad_id
    tokenizer_files.write_json(
        os.path.join(folder, config_module.NAME),
        config_module.to_dict(config, source.head, pad_id),
    )


def _check(source):
    if source.config is None:
        raise ValueError(
            f"There is no model configuration with {source.path}; give its "
            "bert_config.json."
        )
    if source.vocabulary is None:
        return
    source.config.check_vocabulary_size(len(source.vocabulary))
    if source.do_lower_case is None:
        raise ValueError(
            f"Whether the text of {source.path} was lower-cased is not known; give "
            "--do_lower_case."
        )


def _name_in_file(name, kind):
    """Returns the name in a file of the class that belongs to a kind of head."""
    name = names.hugging_face_name(name)
    return name.removeprefix(names.ENCODER_PREFIX) if kind == "encoder" else name
