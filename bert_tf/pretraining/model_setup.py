"""The model of a run: its starting point, configuration, objective and losses."""

import dataclasses
import os
import typing
from collections.abc import Sequence

import keras

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import record_index
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import text_examples
from bert_tf.tokenization import vocabulary as vocabulary_module

MASKED_LM = "masked_lm"
LEFT_TO_RIGHT = "left_to_right"
_TRANSFORM = "cls/predictions/transform/dense/kernel"

# Values of a configuration that other flags determine, with those flags.
_SET_ELSEWHERE = {
    "attention": "use --objective",
    "vocab_size": "it is the size of the vocabulary, or comes from --bert_config_file",
}


def find_start(
    options: pretraining_options.RunPretrainingOptions,
) -> starting_point.StartingPoint:
    """Returns what the run starts from: a checkpoint, a named size, or a new model.

    Raises:
        OSError: a file cannot be read.
        ValueError: no model is given, or more than one; or something is missing.
    """
    if options.model_size is not None:
        return _start_of_size(options, options.model_size)
    config_file = options.bert_config_file
    if config_file is None and options.init_checkpoint is None:
        config_file = os.path.join(options.output_dir, companion_files.CONFIG_FILE)
        if not files.exists(config_file):
            raise options_module.OptionError(
                "A new run needs --bert_config_file, --model_size or "
                f"--init_checkpoint; {options.output_dir} contains no earlier run."
            )
    return starting_point.find(
        options.init_checkpoint,
        bert_config_file=config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        needs_vocabulary=False,
    )


def _start_of_size(options, model_size):
    for name in ("bert_config_file", "init_checkpoint"):
        if getattr(options, name) is not None:
            raise options_module.OptionError(
                f"--model_size={model_size} cannot be combined with --{name}, which "
                "already determines the size."
            )
    vocabulary = None
    if options.vocab_file is not None:
        vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    config = config_module.BertConfig.of_size(
        model_size,
        vocab_size=_vocab_size(options, vocabulary),
        max_position_embeddings=max(
            options.max_seq_length,
            config_module.BertConfig.max_position_embeddings,
        ),
    )
    return starting_point.StartingPoint(
        config=config, vocabulary=vocabulary, do_lower_case=True
    )


def _vocab_size(options, vocabulary):
    if vocabulary is not None:
        return len(vocabulary)
    paths = files.expand(options.input_file)
    if record_index.are_text(paths):
        raise text_examples.no_vocabulary(paths)
    records = tfrecord.RecordFiles(paths[:1])
    vocab_size = records.metadata.get("vocab_size")
    if vocab_size is None:
        folder = os.path.dirname(records.paths[0])
        raise options_module.OptionError(
            f"--model_size needs --vocab_file: the examples in {folder} do not record "
            "the size of their vocabulary."
        )
    return vocab_size


def override(
    config: config_module.BertConfig,
    overrides: Sequence[str],
    *,
    has_weights: bool = False,
) -> config_module.BertConfig:
    """Returns the configuration with the values of `--config_overrides`.

    Args:
        config: the configuration.
        overrides: texts of the form "name=value".
        has_weights: whether the model gets weights from a checkpoint. Then only the
            dropout rates can change, because the weights depend on the other values.

    Raises:
        OptionError: a name is unknown, fixed or repeated, or a value is invalid.
    """
    hints = typing.get_type_hints(type(config))
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(config)}
    changes: dict[str, typing.Any] = {}
    for text in overrides:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in kinds:
            raise _error(
                f"expected NAME=VALUE with one of {', '.join(kinds)}, got {text!r}."
            )
        if name in changes:
            raise _error(f"{name} is given twice.")
        if name in _SET_ELSEWHERE:
            raise _error(f"{name} cannot be changed here; {_SET_ELSEWHERE[name]}.")
        if has_weights and not name.endswith("_dropout_prob"):
            raise _error(
                f"{name} is fixed by the weights of --init_checkpoint; only dropout "
                "rates can be changed."
            )
        try:
            changes[name] = kinds[name](value)
        except ValueError:
            number = "an integer" if kinds[name] is int else "a number"
            raise _error(f"{name}: expected {number}, got {value!r}.") from None
    try:
        return dataclasses.replace(config, **changes)
    except ValueError as error:
        raise _error(error) from None


def _error(what):
    return options_module.OptionError(f"--config_overrides: {what}")


def with_attention(
    config: config_module.BertConfig, objective: str | None
) -> config_module.BertConfig:
    """Returns the configuration with the attention that the objective needs.

    Raises:
        ValueError: the objective is `MASKED_LM` and the model is causal.
    """
    if objective == LEFT_TO_RIGHT:
        return dataclasses.replace(config, attention="causal")
    if objective == MASKED_LM and config.is_causal:
        raise ValueError(
            f"--objective={MASKED_LM} needs a bidirectional model, but attention is "
            f"causal in this one's bert_config.json. Pass --objective={LEFT_TO_RIGHT} "
            "or another model."
        )
    return config


def create_model(
    config: config_module.BertConfig,
    schema: schema_module.Schema,
    dtype: str,
    source: source_module.Source | None = None,
) -> pretrainer.BertLeftToRight | pretrainer.BertPretrainer:
    """Returns the model, not yet built, that learns from examples.

    Args:
        config: the model's configuration.
        schema: the columns of the examples.
        dtype: a Keras dtype or policy.
        source: the checkpoint that the weights will come from.
    """
    if config.is_causal:
        return pretrainer.BertLeftToRight(config, dtype=dtype)
    has_pairs = "next_sentence_labels" in schema
    model = pretrainer.BertPretrainer(config, next_sentence=has_pairs, dtype=dtype)
    if source is not None and _TRANSFORM not in source.shapes:
        # An encoder without this head. Its own vectors are closer to the word
        # embeddings than a random transform of them would be.
        transform = model.cls.predictions.transform.dense
        transform.kernel_initializer = keras.initializers.Identity()
    return model
