"""The objective of a pretraining run: masked words, or the next piece.

The masked-word objective is BERT's (section 3.1 of arXiv:1810.04805): a model that
sees both sides of a word would see the word itself if it had to predict every next
piece, so it predicts pieces that are hidden instead. The left-to-right objective is the
paper's ablation "LTR & No NSP" (section 5.1), where a causal model predicts every next
piece. Both read the same records, with masked pieces restored for the ablation, so that
all runs see the same text.
"""

import dataclasses
from typing import Any

from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.modeling import left_to_right
from bert_tf.modeling import pretrainer
from bert_tf.pretraining import options as pretraining_options

MASKED_LM = "masked_lm"
LEFT_TO_RIGHT = "left_to_right"
_NEXT_SENTENCE = "next_sentence_labels"


def with_attention(
    config: config_module.BertConfig, objective: str | None
) -> config_module.BertConfig:
    """Returns the configuration with the attention that the objective needs.

    Args:
        config: the configuration from a file or checkpoint.
        objective: `MASKED_LM`, `LEFT_TO_RIGHT`, or None for the configuration's.

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


def objective_of(config: config_module.BertConfig) -> str:
    """Returns `LEFT_TO_RIGHT` for a causal configuration, else `MASKED_LM`."""
    return LEFT_TO_RIGHT if config.is_causal else MASKED_LM


def check_records(
    config: config_module.BertConfig, records: tfrecord.RecordFiles
) -> None:
    """Checks that the records suit the objective.

    Args:
        config: the model's configuration.
        records: the training examples.

    Raises:
        ValueError: the records are sentence pairs and the model is causal. Every other
            B is random, and a left-to-right model has no task that would use it.
    """
    if config.is_causal and _NEXT_SENTENCE in records.schema:
        raise ValueError(
            f"{records.paths[0]} contains sentence pairs, but "
            f"--objective={LEFT_TO_RIGHT} needs continuous text. Create the examples "
            "with --next_sentence=false."
        )


def loss_names(
    config: config_module.BertConfig, records: tfrecord.RecordFiles
) -> tuple[str, ...]:
    """Returns the names of the losses of the model of `create_model`."""
    if config.is_causal:
        return left_to_right.BertLeftToRight.loss_names
    sentence_loss = ("next_sentence_loss",) if _NEXT_SENTENCE in records.schema else ()
    return ("masked_lm_loss", *sentence_loss)


def create_model(
    config: config_module.BertConfig,
    records: tfrecord.RecordFiles,
    dtype: str,
) -> left_to_right.BertLeftToRight | pretrainer.BertPretrainer:
    """Returns the model, not yet built, that learns from the records."""
    model: left_to_right.BertLeftToRight | pretrainer.BertPretrainer
    if config.is_causal:
        model = left_to_right.BertLeftToRight(config, dtype=dtype)
    else:
        model = pretrainer.BertPretrainer(
            config, next_sentence=_NEXT_SENTENCE in records.schema, dtype=dtype
        )
    return model


def estimate_arguments(
    config: config_module.BertConfig,
    options: pretraining_options.RunPretrainingOptions,
) -> dict[str, Any]:
    """Returns the arguments of `estimates.estimate` that depend on the objective."""
    if config.is_causal:
        return {"num_predictions": options.max_seq_length, "keeps_logits": False}
    return {"num_predictions": options.max_predictions_per_seq}
