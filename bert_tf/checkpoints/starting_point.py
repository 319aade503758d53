"""What a tool starts from: sizes, word pieces and casing of a checkpoint.

Flags come first; what they leave out comes from the checkpoint, of whatever format it
is. Where both say something, they have to agree.
"""

import dataclasses
import os

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints.release import folder as release_folder
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class StartingPoint:
    """Model size, vocabulary and casing that belong together, and their checkpoint."""

    config: config_module.BertConfig
    vocabulary: vocabulary_module.Vocabulary | None  # None only where it may be.
    do_lower_case: bool
    source: source_module.Source | None = None  # None without a checkpoint.


def find(
    init_checkpoint,
    *,
    bert_config_file=None,
    vocab_file=None,
    do_lower_case=None,
    needs_vocabulary=True,
    progress=progress_module.silent,
) -> StartingPoint:
    """Returns what a tool starts from.

    Args:
        init_checkpoint: a path of any format, the name of a released model, or None.
        bert_config_file: path of the model's size; None: as the checkpoint says.
        vocab_file: path of the vocabulary; None: as the checkpoint has it.
        do_lower_case: bool; None: as the checkpoint says, or else True.
        needs_vocabulary: whether a vocabulary that is not found is an error.
        progress: told about a download.

    Raises:
        OSError: a file cannot be read.
        ValueError: something is neither given nor found, `do_lower_case` is not the
            checkpoint's, or the vocabulary does not fit the embedding table.
        ImportError: the checkpoint's format needs a package that is not installed.

    Example:
        start = starting_point.find("bert-base-uncased")
        start.config, start.vocabulary, start.do_lower_case
    """
    if init_checkpoint is not None:
        init_checkpoint = os.fspath(init_checkpoint)
    if do_lower_case is not None:
        full.validate_case_matches_checkpoint(do_lower_case, init_checkpoint)
    source = None
    if init_checkpoint is not None:
        source = formats.open_source(init_checkpoint, progress=progress)
    return of_source(
        source,
        bert_config_file=bert_config_file,
        vocab_file=vocab_file,
        do_lower_case=do_lower_case,
        needs_vocabulary=needs_vocabulary,
    )


def of_options(options, *, progress=progress_module.silent) -> StartingPoint:
    """Returns what a new run of a fine-tuning tool starts from.

    Args:
        options: has `output_dir`, `init_checkpoint`, `bert_config_file`, `vocab_file`
            and `do_lower_case`.
        progress: told about a download.

    Raises:
        OSError, ValueError, ImportError: as `find`; or neither a checkpoint nor both
            files are given.
    """
    for name in ("bert_config_file", "vocab_file"):
        if options.init_checkpoint is None and getattr(options, name) is None:
            raise ValueError(
                f"{options.output_dir} holds no task.json, so --{name} is needed; or "
                "give --init_checkpoint, or the output_dir of a training run."
            )
    return find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        progress=progress,
    )


def of_source(
    source, *, bert_config_file, vocab_file, do_lower_case, needs_vocabulary=True
) -> StartingPoint:
    """Returns what a tool starts from, of a checkpoint that is open; see `find`."""
    config = _config(bert_config_file, source)
    vocabulary = _vocabulary(vocab_file, source, is_needed=needs_vocabulary)
    if vocabulary is not None:
        config.check_vocabulary_size(len(vocabulary))
    return StartingPoint(
        config=config,
        vocabulary=vocabulary,
        do_lower_case=_do_lower_case(do_lower_case, source),
        source=source,
    )


def _config(bert_config_file, source):
    if bert_config_file is not None:
        return config_module.BertConfig.from_json_file(bert_config_file)
    if source is None or source.config is None:
        raise _not_found("bert_config_file", release_folder.CONFIG_FILE, source)
    return source.config


def _vocabulary(vocab_file, source, *, is_needed):
    if vocab_file is not None:
        return vocabulary_module.Vocabulary.load(vocab_file)
    if source is None or source.vocabulary is None:
        if is_needed:
            raise _not_found("vocab_file", release_folder.VOCAB_FILE, source)
        return None
    if not _is_of_run(source):
        formats.check_vocabulary(source)
    return source.vocabulary


def _is_of_run(source):
    """Returns whether it was checked when it was written: a table may be padded."""
    folder = os.path.dirname(source.path)
    return source.format == release_folder.NAME and files.exists(
        os.path.join(folder, release_folder.TASK_FILE)
    )


def _do_lower_case(given, source):
    recorded = None if source is None else source.do_lower_case
    if None not in (given, recorded) and given != recorded:
        words = {True: "lower-cased", False: "cased"}
        raise ValueError(
            f"--do_lower_case={given}, but {source.path} is of {words[recorded]} "
            f"text; give --do_lower_case={recorded}."
        )
    known = recorded if given is None else given
    return True if known is None else known


def _not_found(flag, file_name, source):
    if source is None:
        return ValueError(f"There is no --init_checkpoint, so --{flag} is needed.")
    return ValueError(
        f"{source.path} has no {file_name} beside it, so --{flag} is needed."
    )
