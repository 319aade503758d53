"""Writes a checkpoint of any format as a Hugging Face folder."""

import os

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.hugging_face import config as hugging_face_config
from bert_tf.checkpoints.hugging_face import names
from bert_tf.checkpoints.hugging_face import sentence_layout
from bert_tf.checkpoints.hugging_face import shards
from bert_tf.checkpoints.hugging_face import tokenizer_files
from bert_tf.modeling import config as config_module


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a source's weights in a Hugging Face folder.

    The classes for masked words, answers and tags have no pooler, because none of
    their outputs uses it.

    Args:
        source: `Source`.

    Raises:
        ValueError: the source lacks weights of its model, its configuration, or the
            casing of its vocabulary; or the vocabulary is longer than the table.
    """
    config = _checked_config(source)
    row = source.head.row
    expected = checkpoint_names.encoder_names(config.num_hidden_layers)
    if not row.hugging_face_has_pooler:
        expected = checkpoint_names.without_pooler(expected)
    expected += row.weights
    missing = [name for name in expected if name not in source.shapes]
    # transformers initializes a pooler for an encoder without one.
    if source.head.kind == "encoder":
        missing = checkpoint_names.without_pooler(missing)
    if missing:
        raise ValueError(
            f"{source.path} lacks {len(missing)} of the weights of a "
            f"{row.hugging_face_class}, such as {missing[0]}; transformers would "
            "initialize them at random."
        )
    return source_module.Placement(
        places={
            name: _name_in_file(name, source.head)
            for name in expected
            if name in source.shapes
        },
        without_place=tuple(name for name in source.shapes if name not in expected),
    )


def write(source: source_module.Source, folder: str) -> None:
    """Writes config.json, model.safetensors and the tokenizer's files.

    For an encoder, this includes the files from which sentence-transformers learns how
    to pool, and for a classifier with one output, those that let it rank.

    Args:
        source: `Source`. Weights without a place are left out.
        folder: an existing, empty folder.

    Raises:
        OSError: a file cannot be written.
        ValueError: as `placement`.
    """
    places = placement(source).places
    tensors = (
        (places[name], array.T if names.is_transposed(name) else array)
        for name, array in source.read_each(places)
    )
    shards.write(folder, tensors)
    vocabulary, config = source.vocabulary, _checked_config(source)
    if vocabulary is not None:
        tokenizer_files.write(
            folder,
            vocabulary,
            bool(source.do_lower_case),
            source.text.max_seq_length or config.max_position_embeddings,
            strip_accents=source.text.strip_accents,
            never_split=source.text.never_split,
        )
        if source.head.kind == "encoder" or _is_ranker(source):
            sentence_layout.write(
                folder, config, source.text, is_ranker=_is_ranker(source)
            )
    pad_id = 0 if vocabulary is None else vocabulary.pad_id
    values = hugging_face_config.to_dict(config, source.head, pad_id)
    if _is_ranker(source):
        # sentence-transformers before version 6 reads no other file. Versions 4 and 5
        # read the first key, versions 2 and 3 the second.
        activation = sentence_layout.activation_class(source.text)
        values["sentence_transformers"] = {"activation_fn": activation}
        values["sbert_ce_default_activation_function"] = activation
    companion_files.write_json(os.path.join(folder, hugging_face_config.NAME), values)


def _is_ranker(source: source_module.Source) -> bool:
    """Returns whether the head scores pairs of texts.

    sentence-transformers applies a sigmoid to every score unless configured otherwise.
    """
    is_regression = source.head.label_kind == checkpoint_heads.REGRESSION
    return is_regression or source.text.output_activation is not None


def _checked_config(source: source_module.Source) -> config_module.BertConfig:
    """Returns the configuration; checks that it goes with the vocabulary."""
    if source.config is None:
        raise ValueError(
            f"{source.path} has no model configuration; pass its bert_config.json."
        )
    if source.vocabulary is None:
        return source.config
    source.config.check_vocabulary_size(len(source.vocabulary))
    if source.do_lower_case is None:
        raise ValueError(
            f"It is unknown whether {source.path} was trained on lowercased text; pass "
            "--do_lower_case."
        )
    return source.config


def _name_in_file(name: str, head: checkpoint_heads.Head) -> str:
    """Returns the name in a file of the head's class."""
    name = names.hugging_face_name(name)
    is_bare = head.kind == "encoder"
    return name.removeprefix(names.ENCODER_PREFIX) if is_bare else name
