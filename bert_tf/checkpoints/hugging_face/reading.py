"""Opens a Hugging Face folder."""

import dataclasses
import os
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

import numpy as np

from bert_tf import files
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.hugging_face import config as hugging_face_config
from bert_tf.checkpoints.hugging_face import h5_weights
from bert_tf.checkpoints.hugging_face import names
from bert_tf.checkpoints.hugging_face import sentence_layout
from bert_tf.checkpoints.hugging_face import shards
from bert_tf.checkpoints.hugging_face import tokenizer
from bert_tf.modeling import config as config_module
from bert_tf.modeling import output_activation
from bert_tf.tokenization import vocabulary as vocabulary_module

FORMAT = "hugging_face"
_MASKED_LM_BIAS = "cls/predictions/output_bias"
# Release's name -> (own name, tensor).
_Tensors = dict[str, tuple[str, shards.StoredTensor]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Weights:
    """The tensors of a folder, assigned to the release's names."""

    by_name: _Tensors
    unmapped: tuple[str, ...]  # Own names.
    notes: tuple[str, ...]
    # Name of an output table that is separate from the word embeddings, which
    # `tie_word_embeddings` false allows. BERT's masked-word head cannot store it.
    untied: str | None = None


def is_at(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a Hugging Face folder, of BERT or of another model.

    Args:
        path: a folder, or its model.safetensors, shard index or tf_model.h5.
    """
    folder = _folder(path)
    if not files.is_folder(folder):
        return False
    found = files.list_folder(folder)
    if shards.holds_weights(found):
        return True
    if hugging_face_config.NAME not in found:
        return False
    try:
        values = files.read_json(os.path.join(folder, hugging_face_config.NAME))
    except ValueError:
        return False
    return "model_type" in values


def open_source(path: str | os.PathLike[str]) -> source_module.Source:
    """Returns the `Source` of a folder.

    Args:
        path: a folder, or its model.safetensors, shard index or tf_model.h5.

    Raises:
        FileNotFoundError: the folder, its configuration, its weights or a shard is
            missing.
        ValueError: the model is not a BERT or an unsupported variant; its weights do
            not match its configuration, or are pickled, quantized or damaged; its
            vocabulary is longer than its table, or not a BERT's.
    """
    folder = _folder(path)
    described = hugging_face_config.read(folder)
    stored = shards.stored_tensors(folder, described.class_name)
    if any(name.endswith(":0") and one.h5 is None for name, one in stored.items()):
        raise ValueError(
            f"{folder}: {shards.NAME} was saved by a TensorFlow class of transformers; "
            "save the model there without safe_serialization, as tf_model.h5."
        )
    num_layers = described.config.num_hidden_layers
    if num_layers > len(stored):  # Checked before names are listed for each layer.
        raise ValueError(
            f"{folder}: {hugging_face_config.NAME} expects {num_layers} layers, but "
            f"there are only {len(stored)} tensors; it belongs to another model, or a "
            "file is missing."
        )
    weights = _assigned(folder, stored, described)
    head, head_notes = _head(weights.by_name, described)
    _check_weights(folder, weights.by_name, described.config, head)
    text, encoding = _text(folder, described)
    has_sigmoid = encoding.output_activation == output_activation.SIGMOID
    is_ranker = described.label_kind is None and has_sigmoid
    if is_ranker and head.num_labels not in (None, 1):
        head = dataclasses.replace(head, label_kind="multi_label")
    size_notes = _check_vocabulary(folder, text.vocabulary, described.config)
    by_name = weights.by_name
    warnings = []
    if described.custom_code is not None:
        warnings.append(
            f"{hugging_face_config.NAME} names custom code ({described.custom_code}), "
            "which bert_tf does not run: it computes what BERT computes."
        )
    return source_module.Source(
        path=folder,
        format=FORMAT,
        shapes={
            name: names.transposed_shape(name, tensor.shape)
            for name, (_, tensor) in by_name.items()
        },
        read_each=lambda wanted: _read_each(folder, weights, wanted),
        head=head,
        config=described.config,
        text=encoding,
        unmapped=weights.unmapped,
        own_names={name: own_name for name, (own_name, _) in by_name.items()},
        warnings=(*warnings, *text.warnings),
        notes=(*weights.notes, *head_notes, *size_notes, *text.notes),
    )


def _text(
    folder: str, described: hugging_face_config.Description
) -> tuple[tokenizer.Description, text_encoding.TextEncoding]:
    text = tokenizer.read(folder)
    encoding = text_encoding.TextEncoding(
        vocabulary=text.vocabulary,
        do_lower_case=text.do_lower_case,
        strip_accents=text.strip_accents,
        never_split=text.never_split,
    )
    more = sentence_layout.read(
        folder, encoding, described=described, max_length=text.max_length
    )
    return text, text_encoding.TextEncoding.from_dict(
        {**encoding.to_dict(), **more}, path=folder, vocabulary=text.vocabulary
    )


def _folder(path: str | os.PathLike[str]) -> str:
    path = os.fspath(path)
    folder, name = os.path.split(path)
    if name in (shards.NAME, shards.INDEX_NAME, h5_weights.NAME):
        return folder or "."
    return path


def _assigned(
    folder: str,
    stored: Mapping[str, shards.StoredTensor],
    described: hugging_face_config.Description,
) -> _Weights:
    num_layers = described.config.num_hidden_layers
    known = {
        names.hugging_face_name(name): name for name in names.known_names(num_layers)
    }
    try:
        prefix, wrapper_note = names.wrapper_prefix(stored)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error
    by_normal_name: _Tensors = {}
    unmapped = []
    for own_name, tensor in stored.items():
        normal_name = names.normal_name(own_name.removeprefix(prefix))
        if normal_name in by_normal_name:
            raise ValueError(
                f"{tensor.path} has {own_name} and {by_normal_name[normal_name][0]}, "
                "which are the same weight; remove one of them."
            )
        if not names.is_buffer(normal_name):
            by_normal_name[normal_name] = (own_name, tensor)
    by_normal_name, differing = _without_tied(by_normal_name)
    notes = [] if wrapper_note is None else [wrapper_note]
    untied = None
    if not described.ties_word_embeddings:
        untied = next(iter(differing), None)
    else:
        notes += [
            f"{name} differs from {names.TIED[name]}, although BERT shares them: it is "
            "left over, and masked words are predicted with the latter."
            for name in differing
        ]
    by_name = {}
    for normal_name, (own_name, tensor) in by_normal_name.items():
        if normal_name in known:
            by_name[known[normal_name]] = (own_name, tensor)
        else:
            unmapped.append(own_name)
    return _Weights(
        by_name=by_name,
        unmapped=tuple(sorted(unmapped)),
        notes=(*notes, *_dtype_notes(by_name)),
        untied=untied,
    )


def _without_tied(by_normal_name: _Tensors) -> tuple[_Tensors, list[str]]:
    """Returns the tensors without aliases of other tensors, and differing aliases.

    An alias whose values differ from the original's is kept; it is reported as left
    over.
    """
    tensors, differing = dict(by_normal_name), []
    for name, original in names.TIED.items():
        if name not in tensors:
            continue
        if original not in tensors:
            tensors[original] = tensors.pop(name)
            continue
        pair = {key: tensors[key] for key in (name, original)}
        arrays = dict(shards.read_each(pair))
        if np.array_equal(arrays[name], arrays[original]):
            del tensors[name]
        else:
            differing.append(name)
    return tensors, differing


def _dtype_notes(by_name: _Tensors) -> Iterator[str]:
    for own_name, tensor in by_name.values():
        if not tensor.is_float:
            raise ValueError(
                f"{tensor.path}: {own_name} is stored as {tensor.dtype}, expected "
                "floating-point numbers; use the model before quantization."
            )
    dtypes = {tensor.dtype for _, tensor in by_name.values()}
    for dtype in sorted(dtypes - {"F32"}):
        how = "rounded" if dtype == "F64" else "exactly"
        yield f"Weights are stored as {dtype} and become float32, {how}."


def _head(
    by_name: _Tensors, described: hugging_face_config.Description
) -> tuple[checkpoint_heads.Head, list[str]]:
    """Returns the `Head` and notes.

    Names decide; the class in config.json decides between heads with equal names.
    """
    shapes = {name: tensor.shape for name, (_, tensor) in by_name.items()}
    shared = checkpoint_heads.KINDS_WITH_OUTPUT_WEIGHTS
    has_classifier = checkpoint_heads.OUTPUT_WEIGHTS in shapes
    known = described.kind if has_classifier and described.kind in shared else None
    head = checkpoint_heads.head_of(shapes, kind=known)
    notes = []
    if has_classifier and not head.is_known:
        # A tagger is saved without the pooler, which a classifier needs.
        if not any(map(checkpoint_names.is_of_pooler, shapes)):
            head = dataclasses.replace(head, kind="token_classification")
        notes.append(
            f"{described.class_name} does not say what classifier.weight is for; it is "
            f"assumed to be the head of {head.row.hugging_face_class}."
        )
    elif head.kind == "pretraining" and _MASKED_LM_BIAS not in shapes:
        head = checkpoint_heads.Head(kind="encoder")
        notes.append("No model in bert_tf has only a next-sentence head.")
    elif described.kind not in (None, "encoder", head.kind):
        notes.append(
            f"{hugging_face_config.NAME} names {described.class_name}, but the weights "
            f"are those of {head.row.hugging_face_class}."
        )
    labels = described.labels
    if labels is not None and head.num_labels not in (None, len(labels)):
        notes.append(
            f"id2label has {len(labels)} names for {head.num_labels} classes; they "
            "are ignored."
        )
    if labels is not None and head.num_labels == len(labels):
        head = dataclasses.replace(head, labels=labels)
    return _with_label_kind(head, described.label_kind, notes)


def _with_label_kind(
    head: checkpoint_heads.Head, label_kind: str | None, notes: list[str]
) -> tuple[checkpoint_heads.Head, list[str]]:
    if head.kind != "classification":
        return head, notes
    if head.num_labels == 1 and label_kind in (None, checkpoint_heads.SINGLE_LABEL):
        # The rule of transformers; a softmax over one output would always be 1.
        label_kind = checkpoint_heads.REGRESSION
    if label_kind is None:
        return head, notes
    if label_kind == checkpoint_heads.REGRESSION and head.num_labels != 1:
        sentence = (
            f"{hugging_face_config.NAME} has problem_type regression with "
            f"{head.num_labels} numbers; bert_tf supports one, so the numbers are the "
            "logits of a classifier here."
        )
        return head, [*notes, sentence]
    return dataclasses.replace(head, label_kind=label_kind), notes


def _check_weights(
    folder: str,
    by_name: _Tensors,
    config: config_module.BertConfig,
    head: checkpoint_heads.Head,
) -> None:
    """Checks that all weights are there with the right shapes.

    The pooler may be missing: sentence encoders are saved without one.
    """
    expected = checkpoint_names.encoder_shapes(config)
    expected |= checkpoint_heads.head_shapes(config, head.kind, head.num_labels)
    missing = [name for name in expected if name not in by_name]
    if head.kind == "encoder" or not head.row.hugging_face_has_pooler:
        missing = checkpoint_names.without_pooler(missing)
    if missing:
        raise ValueError(
            f"{folder}: {len(missing)} of the {len(expected)} weights that "
            f"{hugging_face_config.NAME} expects are missing, such as "
            f"{names.hugging_face_name(missing[0])}; it belongs to another model, or "
            "a file is missing."
        )
    for name, shape in expected.items():
        if name not in by_name:
            continue
        own_name, tensor = by_name[name]
        own_shape = names.transposed_shape(name, shape)
        if tensor.shape != own_shape:
            raise ValueError(
                f"{tensor.path}: {own_name} has shape {list(tensor.shape)}, but "
                f"{hugging_face_config.NAME} expects {list(own_shape)}; the files "
                "belong to different models."
            )


def _check_vocabulary(
    folder: str,
    vocabulary: vocabulary_module.Vocabulary | None,
    config: config_module.BertConfig,
) -> list[str]:
    """Returns notes; raises a ValueError if the table has too few rows."""
    if vocabulary is None:
        return [f"{folder} has no vocabulary."]
    try:
        config.check_vocabulary_size(len(vocabulary))
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error
    if len(vocabulary) == config.vocab_size:
        return []
    return [
        f"The word embedding table has {config.vocab_size} rows for "
        f"{len(vocabulary)} tokens; the last rows are padding."
    ]


def _read_each(
    folder: str, weights: _Weights, wanted: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
    wanted, by_name = list(wanted), weights.by_name
    if weights.untied and _MASKED_LM_BIAS in wanted:
        raise ValueError(
            f"{folder}: {hugging_face_config.NAME} has tie_word_embeddings false, and "
            f"the masked-word head has its own table, {weights.untied}; bert_tf's head "
            "shares the word embeddings and would predict other words. Use the encoder "
            "alone: convert it with --head=encoder, or load it into a BertModel."
        )
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise ValueError(f"The checkpoint has no tensor {unknown[0]}.")
    tensors = {name: by_name[name] for name in wanted}
    for name, array in shards.read_each(tensors):
        array = array.T if names.is_transposed(name) else array
        yield name, np.ascontiguousarray(array, "float32")
