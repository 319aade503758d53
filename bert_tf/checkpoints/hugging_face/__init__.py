"""The format "hugging_face": folders of transformers and sentence-transformers.

`config` reads and writes config.json, `weights` the weights, `tokenizer` the tokenizer
and `sentence_layout` the files of sentence-transformers. torch and transformers are not
needed.
"""

import dataclasses
import functools
import os
from collections.abc import Iterable
from collections.abc import Iterator

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.hugging_face import config as hugging_face_config
from bert_tf.checkpoints.hugging_face import sentence_layout
from bert_tf.checkpoints.hugging_face import tokenizer
from bert_tf.checkpoints.hugging_face import weights
from bert_tf.modeling import config as config_module
from bert_tf.modeling import numerics
from bert_tf.tokenization import vocabulary as vocabulary_module

_MASKED_LM_BIAS = "cls/predictions/output_bias"
# Aliases of weights: the masked-word output table is the word embedding table.
_TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Constant ranges that old folders store with the weights.
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_Tensors = dict[str, weights.StoredTensor]


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a Hugging Face folder, of BERT or of another model."""
    folder = _folder(path)
    if not files.is_folder(folder):
        return False
    names = files.list_folder(folder)
    if weights.holds_weights(names):
        return True
    if hugging_face_config.NAME not in names:
        return False
    try:
        values = files.read_json(os.path.join(folder, hugging_face_config.NAME))
    except ValueError:
        return False
    return "model_type" in values


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a folder, or of its weight file or shard index."""
    folder = _folder(path)
    described = hugging_face_config.read(folder)
    stored = weights.stored_tensors(folder, described.class_name)
    num_layers = described.config.num_hidden_layers
    if num_layers > len(stored):  # Checked before names are listed for each layer.
        raise ValueError(
            f"{folder}: {hugging_face_config.NAME} expects {num_layers} layers, but "
            f"there are only {len(stored)} tensors; it belongs to another model, or a "
            "file is missing."
        )
    tensors = _by_normal_name(folder, stored)
    differing, ties = _remove_tied(tensors), described.ties_word_embeddings
    untied = None if ties else next(iter(differing), None)
    notes = [
        f"{name} differs from {_TIED[name]}, although BERT shares them: it is left "
        "over, and masked words are predicted with the latter."
        for name in (differing if ties else ())
    ]
    known = {weights.hugging_face_name(n): n for n in _known_names(num_layers)}
    by_name = {known[name]: one for name, one in tensors.items() if name in known}
    notes += _dtype_notes(by_name.values())
    head, unread_head, head_notes = _head(by_name, described)
    shapes = {n: weights.transposed_shape(n, one.shape) for n, one in by_name.items()}
    own = functools.partial(_own, by_name)
    checkpoint_heads.check_weights(folder, shapes, described.config, head, own=own)
    text = tokenizer.read(folder)
    notes += _vocabulary_notes(folder, text.text.vocabulary, described.config)
    encoding = sentence_layout.read(
        folder, text.text, described=described, max_length=text.max_length
    )
    has_sigmoid = encoding.output_activation == numerics.SIGMOID
    is_ranker = described.label_kind is None and has_sigmoid
    if is_ranker and head.num_labels not in (None, 1):
        head = dataclasses.replace(head, label_kind="multi_label")
    return source_module.Source(
        path=folder,
        format="hugging_face",
        shapes=shapes,
        read_each=lambda wanted: _read_each(folder, by_name, untied, wanted),
        head=head,
        config=described.config,
        text=encoding,
        unmapped=tuple(sorted(o.name for n, o in tensors.items() if n not in known)),
        unread_head=unread_head,
        warnings=(*described.warnings, *text.warnings),
        notes=(*notes, *head_notes, *text.notes),
    )


def placement(source: source_module.Source) -> source_module.Placement:
    """Returns the `Placement` of a source's weights in a Hugging Face folder.

    The classes for masked words, answers and tags have no pooler, because none of
    their outputs uses it.
    """
    config = _checked_config(source)
    row, is_encoder = source.head.row, source.head.kind == "encoder"
    expected = checkpoint_names.encoder_names(config.num_hidden_layers)
    if not row.hugging_face_has_pooler:
        expected = checkpoint_names.without_pooler(expected)
    expected += row.weights
    missing = [name for name in expected if name not in source.shapes]
    # transformers initializes a pooler for an encoder without one.
    source.check_complete(missing, may_lack_pooler=is_encoder)
    # The file of a bare BertModel leaves the prefix out.
    prefix = weights.ENCODER_PREFIX if is_encoder else ""
    return source_module.Placement(
        places={
            name: weights.hugging_face_name(name).removeprefix(prefix)
            for name in expected
            if name in source.shapes
        }
    )


def write(source: source_module.Source, folder: str) -> None:
    """Writes config.json, model.safetensors and the tokenizer's files.

    For an encoder, this includes the files from which sentence-transformers learns how
    to pool, and for a classifier with one output, those that let it rank.
    """
    places = placement(source).places
    tensors = (
        (places[name], array.T if weights.is_transposed(name) else array)
        for name, array in source.read_each(places)
    )
    weights.write(folder, tensors)
    vocabulary, config = source.vocabulary, _checked_config(source)
    # sentence-transformers applies a sigmoid to every score, unless told not to.
    is_ranker = source.head.num_labels == 1 and (
        source.head.label_kind == checkpoint_heads.REGRESSION
        or source.text.output_activation is not None
    )
    if vocabulary is not None:
        max_length = source.text.max_seq_length or config.max_position_embeddings
        tokenizer.write(folder, source.text, max_length)
        if source.head.kind == "encoder" or is_ranker:
            sentence_layout.write(folder, config, source.text, is_ranker=is_ranker)
    pad_id = 0 if vocabulary is None else vocabulary.pad_id
    values = hugging_face_config.to_dict(config, source.head, pad_id)
    if is_ranker:
        # sentence-transformers before version 6 reads no other file. Versions 4 and 5
        # read the first key, versions 2 and 3 the second.
        activation = sentence_layout.activation_class(source.text)
        values["sentence_transformers"] = {"activation_fn": activation}
        values["sbert_ce_default_activation_function"] = activation
    companion_files.write_json(os.path.join(folder, hugging_face_config.NAME), values)


def _checked_config(source: source_module.Source) -> config_module.BertConfig:
    """Returns the configuration; checks that it goes with the vocabulary."""
    config = source.required_config()
    if source.vocabulary is None:
        return config
    companion_files.check_vocabulary_size(config, len(source.vocabulary))
    if source.do_lower_case is None:
        raise ValueError(
            f"It is unknown whether {source.path} was trained on lowercased text; pass "
            "--do_lower_case."
        )
    return config


def _folder(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    folder, name = os.path.split(path)
    is_file = name in (weights.NAME, weights.INDEX_NAME, weights.H5_NAME)
    return (folder or ".") if is_file else path


def _by_normal_name(folder: str, stored: _Tensors) -> _Tensors:
    """Returns a folder's weights under the names of today's transformers."""
    if any(n.endswith(":0") and one.data_set is None for n, one in stored.items()):
        raise ValueError(
            f"{folder}: {weights.NAME} was saved by a TensorFlow class of "
            "transformers; save the model there without safe_serialization, as "
            "tf_model.h5."
        )
    tensors: _Tensors = {}
    for tensor in stored.values():
        name = weights.normal_name(tensor.name)
        if name in tensors:
            raise ValueError(
                f"{tensor.path} has {tensor.name} and {tensors[name].name}, which are "
                "the same weight; remove one of them."
            )
        if not name.endswith(_BUFFERS):
            tensors[name] = tensor
    return tensors


def _remove_tied(tensors: _Tensors) -> list[str]:
    """Removes aliases of other tensors; returns those whose values differ."""
    differing = []
    for name, original in _TIED.items():
        if name not in tensors:
            continue
        if original not in tensors:
            tensors[original] = tensors.pop(name)
            continue
        pair = {key: tensors[key] for key in (name, original)}
        arrays = dict(weights.read_each(pair))
        if np.array_equal(arrays[name], arrays[original]):
            del tensors[name]
        else:
            differing.append(name)
    return differing


def _known_names(num_layers: int) -> Iterator[str]:
    yield from checkpoint_names.encoder_names(num_layers)
    for row in checkpoint_heads.HEADS.values():
        yield from row.weights


def _dtype_notes(tensors: Iterable[weights.StoredTensor]) -> Iterator[str]:
    dtypes = set()
    for tensor in tensors:
        dtypes.add(tensor.dtype)
        if tensor.dtype not in weights.FLOATS:
            raise ValueError(
                f"{tensor.path}: {tensor.name} is stored as {tensor.dtype}, expected "
                "floating-point numbers; use the model before quantization."
            )
    for dtype in sorted(dtypes - {"F32"}):
        how = "rounded" if dtype == "F64" else "exactly"
        yield f"Weights are stored as {dtype} and become float32, {how}."


def _head(
    by_name: _Tensors, described: hugging_face_config.Description
) -> tuple[checkpoint_heads.Head, str | None, list[str]]:
    """Returns the `Head`, the name of a head that bert_tf does not have, and notes.

    Names decide; the class in config.json decides between heads with equal names.
    """
    shapes = {name: tensor.shape for name, tensor in by_name.items()}
    has_classifier = checkpoint_heads.OUTPUT_WEIGHTS in shapes
    is_shared = described.kind in checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS
    kind = described.kind if has_classifier and is_shared else None
    is_assumed = has_classifier and kind is None
    # A tagger is saved without the pooler, which a classifier needs.
    if is_assumed and not any(n.startswith(checkpoint_names.POOLER) for n in shapes):
        kind = kinds.Head.TOKEN_CLASSIFICATION
    head = checkpoint_heads.head_of(
        shapes,
        kind=kind,
        label_kind=described.label_kind or checkpoint_heads.SINGLE_LABEL,
    )
    notes = []
    if is_assumed:
        head = dataclasses.replace(head, is_known=False)
        notes.append(
            f"{described.class_name} does not say what classifier.weight is for; it is "
            f"assumed to be the head of {head.row.hugging_face_class}."
        )
    elif head.kind == "pretraining" and _MASKED_LM_BIAS not in shapes:
        return checkpoint_heads.Head(kind="encoder"), described.class_name, notes
    elif described.kind not in (None, "encoder", head.kind):
        notes.append(
            f"{hugging_face_config.NAME} names {described.class_name}, but the weights "
            f"are those of {head.row.hugging_face_class}."
        )
    labels = described.labels
    if labels is not None and head.num_labels == len(labels):
        head = dataclasses.replace(head, labels=labels)
    elif labels is not None and head.num_labels is not None:
        notes.append(
            f"id2label has {len(labels)} names for {head.num_labels} classes; they "
            "are ignored."
        )
    return head, None, notes


def _own(
    by_name: _Tensors, name: str, shape: checkpoint_names.Shape
) -> tuple[str, checkpoint_names.Shape]:
    """Returns a weight's name and shape in a Hugging Face folder."""
    stored = by_name.get(name)
    own = weights.hugging_face_name(name) if stored is None else stored.name
    return own, weights.transposed_shape(name, shape)


def _vocabulary_notes(
    folder: str,
    vocabulary: vocabulary_module.Vocabulary | None,
    config: config_module.BertConfig,
) -> list[str]:
    if vocabulary is None:
        return []
    try:
        companion_files.check_vocabulary_size(config, len(vocabulary))
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error
    if len(vocabulary) == config.vocab_size:
        return []
    return [
        f"The word embedding table has {config.vocab_size} rows for "
        f"{len(vocabulary)} tokens; the last rows are padding."
    ]


def _read_each(
    folder: str, by_name: _Tensors, untied: str | None, wanted: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields weights in the release's layout.

    Args:
        folder: for messages.
        by_name: {release's name: tensor}.
        untied: name of an output table that is separate from the word embeddings, which
            `tie_word_embeddings` false allows and BERT's masked-word head cannot store.
        wanted: the release's names.
    """
    wanted = list(wanted)
    if untied and _MASKED_LM_BIAS in wanted:
        raise ValueError(
            f"{folder}: {hugging_face_config.NAME} has tie_word_embeddings false, and "
            f"the masked-word head has its own table, {untied}; bert_tf's head "
            "shares the word embeddings and would predict other words. Use the encoder "
            "alone: convert it with --head=encoder, or load it into a BertModel."
        )
    for name, array in weights.read_each({name: by_name[name] for name in wanted}):
        array = array.T if weights.is_transposed(name) else array
        yield name, np.ascontiguousarray(array, "float32")
