"""How text becomes ids: configuration, vocabulary and casing of a checkpoint.

`find` resolves `--init_checkpoint`: it opens the checkpoint once and returns a
`StartingPoint`, whose `source` is passed on. Flags replace the checkpoint's
configuration and vocabulary.

A tokenizer that differs from the one of the training gives different ids, and no later
step fails: the answers are just wrong. So arguments that contradict the checkpoint are
errors, and an unknown casing is not guessed where it matters. A given vocabulary is
compared with the one beside the checkpoint, in which new words may have replaced
[unused] pieces. If there is none, only the size is compared, or, for a run, the
fingerprint in its task.json.
"""

import dataclasses
import itertools
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)

# The release's vocabularies have these rows for words that users add. Their embeddings
# are untrained, and replacing them changes no other id.
_UNUSED = re.compile(r"\[unused[^\]]*\]")
# Tables are often padded to a multiple of 8, 64 or 128 rows.
_MAX_PADDING = 128


@dataclasses.dataclass(frozen=True, kw_only=True)
class StartingPoint:
    """Configuration, vocabulary and casing that belong together, and their source."""

    config: config_module.BertConfig
    # None only if `find` was called with needs_vocabulary=False.
    vocabulary: vocabulary_module.Vocabulary | None
    do_lower_case: bool
    source: source_module.Source | None = None  # None: no checkpoint was given.
    # Sentences about what cannot be checked; also logged.
    warnings: tuple[str, ...] = ()

    def tokenizer_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments of a tokenizer, besides the vocabulary."""
        text = text_encoding.TextEncoding() if self.source is None else self.source.text
        return {**text.tokenizer_arguments(), "do_lower_case": self.do_lower_case}


def find(
    init_checkpoint: source_module.Source | str | os.PathLike[str] | None,
    *,
    bert_config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    needs_vocabulary: bool = True,
) -> StartingPoint:
    """Opens a checkpoint and returns what a run starts from.

    Args:
        init_checkpoint: a path of any format, the name of a released model, an opened
            checkpoint, or None.
        bert_config_file: path of the configuration; None: the checkpoint's.
        vocab_file: path of the vocabulary; None: the checkpoint's.
        do_lower_case: None: as the checkpoint says, or else True, unless the
            vocabulary has cased pieces.
        needs_vocabulary: whether a missing vocabulary is an error.

    Raises:
        OSError: a file cannot be read.
        ValueError: something is neither given nor found, `do_lower_case` contradicts
            the checkpoint or is unknown for a cased vocabulary, or the vocabulary does
            not match the checkpoint.
        ImportError: the checkpoint's format needs a package that is not installed.

    Example:
        start = starting_point.find("bert-base-uncased")
        start.config, start.vocabulary, start.do_lower_case
    """
    source = init_checkpoint
    if source is not None and not isinstance(source, source_module.Source):
        source = formats.open_source(source)
    text = text_encoding.TextEncoding() if source is None else source.text
    config = _config(bert_config_file, source)
    vocabulary = _vocabulary(vocab_file, source, is_needed=needs_vocabulary)
    warnings: tuple[str, ...] = ()
    if vocabulary is not None:
        companion_files.check_vocabulary_size(config, len(vocabulary))
        if vocab_file is not None and source is not None:
            warnings = check_vocabulary(vocabulary, vocab_file, source)
    # A pretraining without a vocabulary reads records, which are lowercased or not.
    text = dataclasses.replace(
        text, vocabulary=vocabulary if needs_vocabulary else None
    )
    path = str(vocab_file if source is None else source.path)
    casing = text.lowercases(do_lower_case, path, flag="--do_lower_case")
    if text.vocabulary is not None and text.do_lower_case is None:
        doubt = full.casing_warning(
            text.vocabulary, do_lower_case=casing, never_split=text.never_split
        )
        if doubt is not None:
            logger.warning("%s", doubt)
    return StartingPoint(
        config=config,
        vocabulary=vocabulary,
        do_lower_case=casing,
        source=source,
        warnings=warnings,
    )


def find_from_options(options: Any) -> StartingPoint:
    """Returns what a new run or an export starts from; see `find`."""
    for name in ("bert_config_file", "vocab_file"):
        if options.init_checkpoint is None and getattr(options, name) is None:
            raise ValueError(
                f"{options.output_dir} contains no task.json, so --{name} is needed; "
                "or pass --init_checkpoint, or the output_dir of a training run."
            )
    return find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
    )


def check_vocabulary_size(source: source_module.Source) -> None:
    """Checks the size of the vocabulary beside a checkpoint.

    A vocabulary that lost or gained lines shifts all following ids.

    Raises:
        ValueError: it does not have one piece for each row of the embedding table.
    """
    if fault := _size_fault(source):
        raise ValueError(
            f"{fault}, so ids would be wrong; pass the matching vocabulary as "
            "--vocab_file."
        )


def check_vocabulary(
    vocabulary: vocabulary_module.Vocabulary, path: str, source: source_module.Source
) -> tuple[str, ...]:
    """Compares a given vocabulary with that of a checkpoint.

    Args:
        vocabulary: the given vocabulary.
        path: its file, for messages.
        source: the checkpoint.

    Returns:
        A warning, which is also logged, or None.

    Raises:
        ValueError: it does not match the checkpoint.
    """
    trained = source.vocabulary
    if trained is None or _size_fault(source):
        return _compare_size(vocabulary, path, source)
    pairs = itertools.zip_longest(trained.tokens, vocabulary.tokens[: len(trained)])
    wrong = [
        index
        for index, (there, here) in enumerate(pairs)
        if there != here and not (here and _UNUSED.fullmatch(there))
    ]
    if not wrong:
        return ()
    first, place = wrong[0], f"missing here, among {len(vocabulary):,} pieces"
    if first < len(vocabulary):
        place = f"{vocabulary.tokens[first]!r} here"
    raise ValueError(
        f"{path} is not the vocabulary of {source.path}: id {first} is "
        f"{trained.tokens[first]!r} there and {place} ({len(wrong):,} of "
        f"{len(trained):,} ids differ); omit --vocab_file to use the one beside the "
        "checkpoint. Only [unused] pieces may be replaced."
    )


def _config(
    bert_config_file: str | None, source: source_module.Source | None
) -> config_module.BertConfig:
    """Returns the configuration; logs what a given one computes differently.

    Other sizes are errors when the weights are loaded, but no shape shows the
    activation or the number of heads.
    """
    trained = None if source is None else source.config
    if bert_config_file is None:
        if trained is None:
            raise _not_found("bert_config_file", companion_files.CONFIG_FILE, source)
        return trained
    config = config_module.BertConfig.from_json_file(bert_config_file)
    if source is None or trained is None:
        return config
    ours, theirs = config.to_dict(), trained.to_dict()
    differences = [
        f"{name} {ours.get(name)} instead of {theirs.get(name)}"
        for name in sorted({*ours, *theirs} - {*companion_files.FREE_VALUES})
        if ours.get(name) != theirs.get(name)
    ]
    if differences:
        logger.warning(
            "--bert_config_file=%s has %s, with which %s was trained; it will compute "
            "something else.",
            bert_config_file,
            ", ".join(differences),
            source.path,
        )
    return config


def _vocabulary(
    vocab_file: str | None, source: source_module.Source | None, *, is_needed: bool
) -> vocabulary_module.Vocabulary | None:
    if vocab_file is not None:
        return vocabulary_module.Vocabulary.load(vocab_file)
    if source is None or source.vocabulary is None:
        if is_needed:
            raise _not_found("vocab_file", companion_files.VOCAB_FILE, source)
        return None
    check_vocabulary_size(source)
    return source.vocabulary


def _not_found(
    flag: str, file_name: str, source: source_module.Source | None
) -> ValueError:
    absent = f"{file_name} beside {source.path}" if source else "--init_checkpoint"
    return ValueError(f"There is no {absent}, so --{flag} is needed.")


def _size_fault(source: source_module.Source) -> str | None:
    """Returns what is wrong with the size of the vocabulary beside a checkpoint."""
    if source.vocabulary is None or _task(source):
        return None
    num_pieces, num_rows = len(source.vocabulary), _num_rows(source)
    # Padded tables are common with Hugging Face. Elsewhere a shorter vocabulary has
    # most likely lost lines.
    is_padded = source.format == "hugging_face" and _is_padded(num_pieces, num_rows)
    if num_rows in (0, num_pieces) or is_padded:
        return None
    return (
        f"The vocabulary of {source.path} has {num_pieces} pieces, but its embedding "
        f"table has {num_rows} rows"
    )


def _compare_size(
    vocabulary: vocabulary_module.Vocabulary, path: str, source: source_module.Source
) -> tuple[str, ...]:
    """Compares fingerprint and size for a checkpoint without a good vocab.txt."""
    recorded = _task(source).get(companion_files.FINGERPRINT)
    if recorded not in (None, vocabulary.fingerprint):
        raise ValueError(
            f"{path} is not the vocabulary that {source.path} was trained with; its "
            f"{companion_files.TASK_FILE} records another fingerprint."
        )
    num_pieces, num_rows = len(vocabulary), _num_rows(source)
    # `companion_files.check_vocabulary_size` refuses more pieces.
    if num_pieces >= num_rows:
        return ()
    sizes = (
        f"{path} has {num_pieces:,} pieces, but the embedding table of {source.path} "
        f"has {num_rows:,} rows"
    )
    if not _is_padded(num_pieces, num_rows):
        raise ValueError(
            f"{sizes}, so it is not the vocabulary of this checkpoint; pass the "
            "matching one as --vocab_file. If the last rows are unused, add a line "
            "such as [unused1] to the vocabulary for each of them."
        )
    warning = (
        f"{sizes}. That is right only if the table was padded; there is no vocabulary "
        "beside the checkpoint to compare it with."
    )
    logger.warning("%s", warning)
    return (warning,)


def _task(source: source_module.Source) -> Mapping[str, Any]:
    """Returns the task.json of a run or of a conversion, empty for other checkpoints.

    Their vocabulary was checked when it was written, and their table may be padded.
    """
    is_native = source.format == "bert"
    return companion_files.read_task(os.path.dirname(source.path)) if is_native else {}


def _num_rows(source: source_module.Source) -> int:
    """Returns the rows of the embedding table; 0 if it is missing."""
    return source.shapes.get(checkpoint_names.WORD_EMBEDDINGS, (0,))[0]


def _is_padded(num_pieces: int, num_rows: int) -> bool:
    """Returns whether the table may have been padded to suit an accelerator."""
    return num_rows % 8 == 0 and 0 < num_rows - num_pieces < _MAX_PADDING
