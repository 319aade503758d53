"""How `--init_checkpoint` is resolved: configuration, vocabulary and casing of a run.

`find` opens the checkpoint once (`formats.open_source`) and returns a `StartingPoint`,
whose `source` is passed on, so that nothing opens the checkpoint a second time; its
weights go into the model with `loading.load_source`. Flags replace the checkpoint's
configuration and vocabulary. A `--do_lower_case` that contradicts the checkpoint is an
error, because the run would silently train on the wrong ids.
"""

import dataclasses
import logging
import os
from typing import Any

from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints import vocabulary_checks
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)


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
        text = dataclasses.replace(text, do_lower_case=self.do_lower_case)
        return text.tokenizer_arguments()


def find(
    init_checkpoint: str | os.PathLike[str] | None,
    *,
    bert_config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    needs_vocabulary: bool = True,
    logs_casing: bool = True,
    progress: progress_module.Progress = progress_module.silent,
) -> StartingPoint:
    """Opens a checkpoint and returns what a run starts from.

    Args:
        init_checkpoint: a path of any format, the name of a released model, or None.
        bert_config_file: path of the configuration; None: the checkpoint's.
        vocab_file: path of the vocabulary; None: the checkpoint's.
        do_lower_case: None: as the checkpoint says, or else True, unless the
            vocabulary has cased pieces.
        needs_vocabulary: whether a missing vocabulary is an error.
        logs_casing: whether to log a vocabulary that does not fit `do_lower_case`.
        progress: reports a download.

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
    if init_checkpoint is not None:
        init_checkpoint = os.fspath(init_checkpoint)
    source = None
    if init_checkpoint is not None:
        source = formats.open_source(init_checkpoint, progress=progress)
    start = complete_source(
        source,
        bert_config_file=bert_config_file,
        vocab_file=vocab_file,
        do_lower_case=do_lower_case,
        needs_vocabulary=needs_vocabulary,
    )
    # A pretraining without a vocabulary reads records, which are lowercased or not.
    text = text_encoding.TextEncoding() if source is None else source.text
    if (
        start.vocabulary is None
        or not needs_vocabulary
        or text.do_lower_case is not None
    ):
        return start
    text = dataclasses.replace(text, vocabulary=start.vocabulary)
    path = vocab_file if source is None else source.path
    text.lowercases(do_lower_case, str(path), flag="--do_lower_case")
    warning = full.casing_warning(
        start.vocabulary,
        do_lower_case=start.do_lower_case,
        never_split=text.never_split,
    )
    if logs_casing and warning is not None:
        logger.warning("%s", warning)
    return start


def find_from_options(
    options: Any,
    *,
    logs_casing: bool = True,
    progress: progress_module.Progress = progress_module.silent,
) -> StartingPoint:
    """Returns what a new run of a fine-tuning tool starts from.

    Args:
        options: has `output_dir`, `init_checkpoint`, `bert_config_file`, `vocab_file`
            and `do_lower_case`.
        logs_casing: see `find`.
        progress: reports a download.

    Raises:
        OSError, ValueError, ImportError: as `find`; or neither a checkpoint nor both
            files are given.
    """
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
        logs_casing=logs_casing,
        progress=progress,
    )


def complete_source(
    source: source_module.Source | None,
    *,
    bert_config_file: str | None,
    vocab_file: str | None,
    do_lower_case: bool | None,
    needs_vocabulary: bool = True,
) -> StartingPoint:
    """Returns what a run starts from, given an opened checkpoint; see `find`."""
    config = _config(bert_config_file, source)
    text = text_encoding.TextEncoding() if source is None else source.text
    # Whether an unknown casing fits the vocabulary is checked by `find`.
    casing = dataclasses.replace(text, vocabulary=None).lowercases(
        do_lower_case, "" if source is None else source.path, flag="--do_lower_case"
    )
    vocabulary = _vocabulary(vocab_file, source, is_needed=needs_vocabulary)
    warning = None
    if vocabulary is not None:
        config.check_vocabulary_size(len(vocabulary))
    if vocabulary is not None and vocab_file is not None and source is not None:
        warning = vocabulary_checks.check_given(vocabulary, vocab_file, source)
    return StartingPoint(
        config=config,
        vocabulary=vocabulary,
        do_lower_case=casing,
        source=source,
        warnings=() if warning is None else (warning,),
    )


def _config(
    bert_config_file: str | None, source: source_module.Source | None
) -> config_module.BertConfig:
    if bert_config_file is not None:
        config = config_module.BertConfig.from_json_file(bert_config_file)
        if source is not None and source.config is not None:
            _warn_of_differences(bert_config_file, config, source)
        return config
    if source is None or source.config is None:
        raise _not_found("bert_config_file", companion_files.CONFIG_FILE, source)
    return source.config


def _warn_of_differences(
    path: str, config: config_module.BertConfig, source: source_module.Source
) -> None:
    """Logs values with which a checkpoint's weights compute something else.

    Other sizes are errors when the weights are loaded, but no shape shows the
    activation or the number of heads.
    """
    values, trained = config.to_dict(), source.required_config().to_dict()
    names = sorted({*values, *trained} - {*config.FREE_VALUES})
    differences = [
        f"{name} {values.get(name)} instead of {trained.get(name)}"
        for name in names
        if values.get(name) != trained.get(name)
    ]
    if differences:
        logger.warning(
            "--bert_config_file=%s has %s, with which %s was trained; it will compute "
            "something else.",
            path,
            ", ".join(differences),
            source.path,
        )


def _vocabulary(
    vocab_file: str | None, source: source_module.Source | None, *, is_needed: bool
) -> vocabulary_module.Vocabulary | None:
    if vocab_file is not None:
        return vocabulary_module.Vocabulary.load(vocab_file)
    if source is None or source.vocabulary is None:
        if is_needed:
            raise _not_found("vocab_file", companion_files.VOCAB_FILE, source)
        return None
    vocabulary_checks.check_own(source)
    return source.vocabulary


def _not_found(
    flag: str, file_name: str, source: source_module.Source | None
) -> ValueError:
    if source is None:
        return ValueError(f"There is no --init_checkpoint, so --{flag} is needed.")
    return ValueError(
        f"There is no {file_name} beside {source.path}, so --{flag} is needed."
    )
