"""Opens the files of examples, records or text, and checks that they suit a run."""

import dataclasses
import itertools
import logging
from collections.abc import Sequence

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import bundle
from bert_tf.data import batching
from bert_tf.data import record_checks
from bert_tf.data import record_index
from bert_tf.data import remote_blocks
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import text_examples
from bert_tf.pretraining_data import counts as counts_module
from bert_tf.pretraining_data import graph_pools
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_file

logger = logging.getLogger(__name__)

Examples = tfrecord.RecordFiles | text_examples.TextExamples

# Options that apply to text only.
_TEXT_OPTIONS = (
    "do_lower_case",
    *(
        field.name
        for field in dataclasses.fields(pretraining_data_options.ExampleOptions)
    ),
)
# Those that a run on records may have for its evaluation on text. The others say how
# to mask, and training would silently keep the masks of the records.
_EVALUATION_OPTIONS = (
    "do_lower_case",
    "max_unknown_share",
    "next_sentence",
    "short_seq_prob",
)
# Lines of each file, of a few, that show whether the vocabulary suits the text.
_SAMPLED_LINES, _SAMPLED_FILES = 500, 20


def open_examples(
    patterns: str | None,
    options: pretraining_options.RunPretrainingOptions,
    *,
    config: config_module.BertConfig,
    vocabulary: vocabulary_module.Vocabulary | None,
    source: source_module.Source | None,
    is_phase: bool = False,
) -> Examples:
    """Opens files of examples and checks them.

    Args:
        patterns: names and globs of records, or of text.
        options: lengths, and how text becomes examples.
        config: the model's configuration.
        vocabulary: the vocabulary, or None if it is unknown.
        source: the checkpoint that training starts from, or None.
        is_phase: whether to open only the records that have the length of `options`.

    Raises:
        OSError: a file cannot be read.
        ValueError: the files contradict the options or the model, or contain both text
            and records.
    """
    paths = files.expand(str(patterns))
    if record_index.are_text(paths):
        return _open_text(paths, options, config, vocabulary, source)
    if is_phase:
        paths = _with_length(paths, options.max_seq_length)
    records = _open_records(paths, options, config, vocabulary, is_phase=is_phase)
    _check_casing(records, source)
    return records


def _with_length(paths, length):
    """Returns the records that have the length of a phase."""
    schemas = files.map_paths(lambda path: tfrecord.RecordFiles([path]).schema, paths)
    lengths = [schema["input_ids"].length for schema in schemas]
    chosen = [path for path, one in zip(paths, lengths, strict=True) if one == length]
    if not chosen:
        raise ValueError(
            f"--phases has a phase of length {length}, but the records of {paths[0]} "
            f"and the other files have only {', '.join(map(str, sorted({*lengths})))}."
        )
    return chosen


def record_source(records: tfrecord.RecordFiles) -> batching.TFRecordSource:
    """Returns the rows of records. As in 2018, further columns are ignored.

    Raises:
        ValueError: a column is missing, such as a mask that has a different name.
    """
    schema, path = records.schema, records.paths[0]
    needed = schema_module.pretraining(1, 1, next_sentence=False).names
    if missing := [name for name in needed if name not in schema]:
        raise ValueError(
            f"{path} has no column {', '.join(missing)}, only "
            f"{', '.join(schema.names)}; create the examples again."
        )
    known = schema_module.pretraining(1, 1, sequences_per_row=1).names
    if further := [name for name in schema.names if name not in known]:
        names = ", ".join(further)
        logger.warning("%s has columns that training does not read: %s.", path, names)
    columns = tuple(column for column in schema.columns if column.name in known)
    return batching.TFRecordSource(records, schema_module.Schema(columns=columns))


def is_text(examples: Examples) -> bool:
    """Returns whether examples are made from text."""
    return isinstance(examples, text_examples.TextExamples)


def check_alike(examples: Examples, eval_examples: Examples) -> None:
    """Checks that examples to train and to evaluate on have equal columns and casing.

    Raises:
        ValueError: they differ.
    """
    both = (examples, eval_examples)
    has_labels = ["next_sentence_labels" in part.schema for part in both]
    if has_labels[0] != has_labels[1]:
        raise ValueError(
            f"{eval_examples.paths[0]} and {examples.paths[0]} have different "
            "columns; create both with the same --next_sentence."
        )
    casings = [part.metadata.get("do_lower_case") for part in both]
    if None not in casings and casings[0] != casings[1]:
        raise ValueError(
            f"{eval_examples.paths[0]} has do_lower_case={casings[1]}, but "
            f"{examples.paths[0]} has {casings[0]}; use the same casing for both."
        )


def check_options(
    options: pretraining_options.RunPretrainingOptions,
    examples: Examples,
    eval_examples: Examples,
) -> None:
    """Checks that all options apply to the examples.

    Args:
        options: the options.
        examples: to train on.
        eval_examples: to evaluate on.

    Raises:
        ValueError: an option would be ignored, or the examples are sentence pairs and
            the run in output_dir has no next-sentence task.
    """
    _check_next_sentence(options.output_dir, examples)
    if isinstance(examples, tfrecord.RecordFiles):
        where = examples.paths[0]
        exempt = _EVALUATION_OPTIONS if is_text(eval_examples) else ()
        for name in (one for one in _TEXT_OPTIONS if one not in exempt):
            options.refuse(
                name,
                f"applies to text, but {where} contains records; pass it to bert_tf "
                "create-data",
            )
        return
    if options.shuffle_buffer_size:
        raise options_module.OptionError(
            "--shuffle_buffer_size applies to records. The examples of text are "
            f"always shuffled, in pools of {graph_pools.SHARDS_PER_POOL} shards of up "
            "to 8 MB."
        )


def _check_next_sentence(output_dir, examples):
    """Refuses sentence pairs for a trained model without a head for them."""
    has_pairs = "next_sentence_labels" in examples.schema
    if not has_pairs or bundle.latest(output_dir) is None:
        return
    if companion_files.read_task(output_dir).get("next_sentence") is False:
        where = "bert_tf pretrain" if is_text(examples) else "bert_tf create-data"
        raise ValueError(
            f"{output_dir} contains a run without the next-sentence task, but the "
            f"examples of {examples.paths[0]} are sentence pairs; pass "
            f"--next_sentence=False to {where}."
        )


def recorded_vocabulary(
    examples: Examples, source: source_module.Source | None
) -> vocabulary_module.Vocabulary | None:
    """Returns the vocabulary of the examples, or None if it is unavailable.

    Raises:
        OSError: the vocabulary cannot be read.
        ValueError: it is not that of the records or of the checkpoint.
    """
    if isinstance(examples, text_examples.TextExamples):
        return examples.vocabulary
    path = examples.metadata.get("vocab_file")
    if path is None or not files.exists(path):
        logger.warning(
            "The vocabulary of %s is unknown; pass --vocab_file to keep it with the "
            "run.",
            examples.paths[0],
        )
        return None
    recorded = vocabulary_module.Vocabulary.load(path)
    record_checks.check_vocabulary(examples, recorded)
    if source is not None:
        starting_point.check_vocabulary(recorded, path, source)
    return recorded


def data_set(
    patterns: str, sources: Sequence[Examples], *, window: int | None = None
) -> run_file.DataSet:
    """Returns the data set of examples.

    Text is identified by its content. Records, which are far larger, are identified by
    their names and sizes.

    Args:
        patterns: names and globs; the first one names the data set.
        sources: the examples of each phase.
        window: `shuffle_buffer_size`, if they are to train on.
    """
    paths = tuple(dict.fromkeys(path for source in sources for path in source.paths))
    order, first = None, sources[0]
    if window is not None and isinstance(first, tfrecord.RecordFiles):
        order = remote_blocks.order_of(first, window)
    return run_file.DataSet(
        name=run_file.stem(patterns.split(",")[0]),
        paths=paths,
        by_size=not is_text(first),
        order=order,
    )


def _open_records(paths, options, config, vocabulary, *, is_phase):
    records = tfrecord.RecordFiles(paths)
    max_predictions = options.max_predictions_per_seq
    record_checks.check(
        records,
        max_seq_length=options.max_seq_length,
        max_predictions_per_seq=None if is_phase else max_predictions,
        vocab_size=config.vocab_size,
        vocabulary=vocabulary,
        type_vocab_size=config.type_vocab_size,
        max_position_embeddings=config.max_position_embeddings,
    )
    return records


def _open_text(paths, options, config, vocabulary, source):
    if vocabulary is None:
        vocabulary = companion_files.read_vocabulary(options.output_dir)
    if vocabulary is None:
        raise text_examples.no_vocabulary(paths)
    companion_files.check_vocabulary_size(config, len(vocabulary))
    if options.next_sentence and config.type_vocab_size < 2:
        raise ValueError(
            "Sentence pairs have two segments, but type_vocab_size is "
            f"{config.type_vocab_size}; pass --next_sentence=false."
        )
    if not config.is_causal:
        _check_num_predictions(paths[0], options)
    _warn_about_accents(source)
    do_lower_case = _casing(options, source, vocabulary)
    examples = text_examples.TextExamples(
        paths, options, vocabulary, do_lower_case=do_lower_case
    )
    tokenizer = full.FullTokenizer(vocabulary, do_lower_case=do_lower_case)
    counts = counts_module.Counts()
    sampled = paths[:_SAMPLED_FILES]
    for path in sampled:
        for line in itertools.islice(files.read_lines(path), _SAMPLED_LINES):
            pieces = tokenizer.tokenize(line)
            counts.pieces += len(pieces)
            counts.unknown += pieces.count(vocabulary_module.UNK)
    counts_module.check_unknown(counts, options.max_unknown_share)
    name = ", ".join(sampled) if len(sampled) < 3 else f"{len(sampled)} files"
    record_checks.warn_about_unknown(counts.unknown_share, name)
    return examples


def _check_num_predictions(path, options):
    """Checks that max_predictions_per_seq allows for masked_lm_prob of a full row."""
    length, limit = options.max_seq_length, options.max_predictions_per_seq
    wanted = pretraining_data_options.num_wanted(length, options.masked_lm_prob)
    if wanted > limit:
        raise ValueError(
            f"--max_predictions_per_seq={limit} allows masking only "
            f"{limit / length:.1%} of the {length} pieces of an example of "
            f"{path}, but --masked_lm_prob is "
            f"{options.masked_lm_prob:g}; pass --max_predictions_per_seq={wanted}, or "
            "a smaller --masked_lm_prob."
        )


def _casing(options, source, vocabulary):
    """Returns whether to lowercase text; warns if the vocabulary does not fit."""
    recorded = companion_files.read_task(options.output_dir).get("do_lower_case")
    of_source = None if source is None else source.do_lower_case
    choices = (options.do_lower_case, of_source, recorded, True)
    do_lower_case = next(value for value in choices if value is not None)
    warning = full.pretraining_casing_warning(vocabulary, do_lower_case=do_lower_case)
    if warning is not None:
        logger.warning("%s", warning)
    return do_lower_case


def _check_casing(records, source):
    """Refuses records whose casing differs from the checkpoint's."""
    recorded = records.metadata.get("do_lower_case")
    expected = None if source is None else source.do_lower_case
    if None not in (recorded, expected) and recorded != expected:
        raise ValueError(
            f"{records.paths[0]} was created with --do_lower_case={recorded}, but "
            f"{source.path} was trained with {expected}; create the examples again."
        )
    _warn_about_accents(source)


def _warn_about_accents(source):
    if source is not None and source.text.strip_accents is not None:
        logger.warning(
            "%s was trained on text with strip_accents=%s, but pretraining examples "
            "have no accents if they are lowercased, and keep them otherwise.",
            source.path,
            source.text.strip_accents,
        )
