"""How a checkpoint, or a folder with a tokenizer's files, turns text into ids.

A tokenizer that differs from the one of the training gives different ids, and no later
step fails. So arguments that contradict the checkpoint are errors, and an unknown
casing is not guessed where it matters.
"""

import dataclasses
import logging
import os
import re
from collections.abc import Sequence
from typing import Any

from bert_tf import files
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.hugging_face import tokenizer
from bert_tf.tokenization import full

logger = logging.getLogger(__name__)

_TOKENIZER_FILES = (companion_files.VOCAB_FILE, tokenizer.NAME, tokenizer.OPTIONS_NAME)
# Names of files with weights that some format reads. PyTorch's pickled .bin files are
# not among them: no format reads them, but the tokenizer beside them is useful.
_WEIGHTS = re.compile(r"checkpoint|.*\.(index|index\.json|safetensors|h5|keras|pb)")
# transformers writes 1e30 if there is no limit.
_NO_LIMIT = 1e9


def find(
    source: source_module.Source | full.FullTokenizer | str | os.PathLike[str],
    *,
    do_lower_case: bool | None = None,
    strip_accents: bool | None = None,
    never_split: Sequence[str] = (),
) -> text_encoding.TextEncoding:
    """Returns how text becomes ids; vocabulary and casing are known.

    Args:
        source: an opened checkpoint; the path or name of one, as for
            `formats.open_source`; a folder with only the files of a tokenizer; or a
            tokenizer.
        do_lower_case: None: as the source says. If it says nothing, text is lowercased
            unless the vocabulary has cased pieces, which is an error.
        strip_accents: None: as the source says, or else as `do_lower_case`.
        never_split: tokens to keep whole in addition to those of the source.

    Returns:
        A `TextEncoding`. Its `max_seq_length` is at most the number of positions of the
        checkpoint's model.

    Raises:
        OSError: there is no such checkpoint or folder, or it cannot be read.
        ValueError: there is no vocabulary, it does not match the weights, the casing is
            unknown, or an argument contradicts the source.
        ImportError: the format needs a package that is not installed.
    """
    path, text = _opened(source)
    if text.vocabulary is None:
        raise ValueError(
            f"{path} has no vocabulary; expected a {companion_files.VOCAB_FILE} or "
            f"{tokenizer.NAME} beside it. Pass the vocabulary's own file instead."
        )
    recorded = text.strip_accents
    if recorded is None:
        recorded = text.do_lower_case
    if None not in (strip_accents, recorded) and strip_accents != recorded:
        trained_on = "without" if recorded else "with"
        raise ValueError(
            f"strip_accents={strip_accents}, but {path} was trained on text "
            f"{trained_on} accents; omit strip_accents."
        )
    return dataclasses.replace(
        text,
        do_lower_case=text.lowercases(do_lower_case, path, flag="do_lower_case"),
        strip_accents=text.strip_accents if strip_accents is None else strip_accents,
        never_split=(*text.never_split, *never_split),
    )


def _opened(source: Any) -> tuple[str, text_encoding.TextEncoding]:
    """Returns a name for messages, and what the source says about its text."""
    if isinstance(source, full.FullTokenizer):
        return "the tokenizer", text_encoding.TextEncoding(
            vocabulary=source.vocabulary,
            **source.tokenizer_arguments(),
            max_seq_length=getattr(source, "max_seq_length", None),
        )
    if isinstance(source, str | os.PathLike):
        if _is_tokenizer_alone(source):
            return os.fspath(source), _text_of_folder(os.fspath(source))
        source = formats.open_source(source)
        for warning in source.warnings:
            logger.warning("%s: %s", source.path, warning)
    elif not isinstance(source, source_module.Source):
        raise ValueError(
            "Expected the path or name of a checkpoint, a folder with a tokenizer, a "
            "vocabulary, an opened Source or a FullTokenizer, got "
            f"{type(source).__name__}."
        )
    text = source.text
    if text.vocabulary is not None:
        starting_point.check_vocabulary_size(source)
    if source.config is not None:
        positions = source.config.max_position_embeddings
        longest = min(text.max_seq_length or positions, positions)
        text = dataclasses.replace(text, max_seq_length=longest)
    return source.path, text


def _is_tokenizer_alone(path: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder with a tokenizer and no readable weights."""
    if not files.is_folder(path):
        return False
    names = files.list_folder(path)
    has_tokenizer = any(name in names for name in _TOKENIZER_FILES)
    return has_tokenizer and not any(map(_WEIGHTS.fullmatch, names))


def _text_of_folder(folder: str) -> text_encoding.TextEncoding:
    beside = (companion_files.TASK_FILE, companion_files.CONFIG_FILE)
    if any(files.exists(os.path.join(folder, name)) for name in beside):
        text = companion_files.read_text(folder)
        config = companion_files.read_config(folder)
        if config is None:
            return text
        if text.vocabulary is not None:
            companion_files.check_vocabulary_size(config, len(text.vocabulary))
        limit = text.max_seq_length or config.max_position_embeddings
        return dataclasses.replace(text, max_seq_length=limit)
    described = tokenizer.read(folder)
    for warning in described.warnings:
        logger.warning("%s: %s", folder, warning)
    text = described.text
    if text.do_lower_case is None:
        casing = full.is_lower_cased(os.path.basename(os.path.abspath(folder)))
        text = dataclasses.replace(text, do_lower_case=casing)
    stated = described.max_length
    if stated and stated < _NO_LIMIT:
        text = dataclasses.replace(text, max_seq_length=int(stated))
    return text
