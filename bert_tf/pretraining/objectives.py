"""What a pretraining run learns: masked words, or which piece comes next."""

import dataclasses

from bert_tf.modeling import config as config_module
from bert_tf.modeling import left_to_right
from bert_tf.modeling import pretrainer

MASKED_LM = "masked_lm"
LEFT_TO_RIGHT = "left_to_right"
_NEXT_SENTENCE = "next_sentence_labels"


def with_attention(config: config_module.BertConfig, objective: str | None):
    """Returns the configuration with the attention that an objective needs.

    Args:
        config: as file or checkpoint have it.
        objective: `MASKED_LM`, `LEFT_TO_RIGHT`, or None for that of the configuration.

    Raises:
        ValueError: masked words are to be learned by a causal model.
    """
    if objective == LEFT_TO_RIGHT:
        return dataclasses.replace(config, attention="causal")
    if objective == MASKED_LM and config.is_causal:
        raise ValueError(
            f"--objective={MASKED_LM}, but the model is causal (attention in its "
            f"bert_config.json): it sees nothing to the right of a mask. Give "
            f"--objective={LEFT_TO_RIGHT}, or another model."
        )
    return config


def objective_of(config: config_module.BertConfig) -> str:
    """Returns `LEFT_TO_RIGHT` for a causal configuration, else `MASKED_LM`."""
    return LEFT_TO_RIGHT if config.is_causal else MASKED_LM


def check_records(config: config_module.BertConfig, records) -> None:
    """Checks that records are of the kind that the objective needs.

    Args:
        config: of the model.
        records: `tfrecord.RecordFiles`.

    Raises:
        ValueError: they are sentence pairs, and the model reads from left to right.
    """
    if config.is_causal and _NEXT_SENTENCE in records.schema:
        raise ValueError(
            f"{records.paths[0]} holds sentence pairs, of which --objective="
            f"{LEFT_TO_RIGHT} makes no use: every other second sentence is a random "
            "one. Create the examples with --next_sentence=False."
        )


def loss_names(config: config_module.BertConfig, records) -> tuple[str, ...]:
    """Returns the names of what the model of `create_model` learns."""
    if config.is_causal:
        return left_to_right.BertLeftToRight.loss_names
    sentence_loss = ("next_sentence_loss",) if _NEXT_SENTENCE in records.schema else ()
    return ("masked_lm_loss", *sentence_loss)


def create_model(config: config_module.BertConfig, records, dtype: str):
    """Returns the model that learns from records: a `heads.TaskModel`, not built."""
    if config.is_causal:
        return left_to_right.BertLeftToRight(config, dtype=dtype)
    return pretrainer.BertPretrainer(
        config, next_sentence=_NEXT_SENTENCE in records.schema, dtype=dtype
    )


def predictions(config: config_module.BertConfig, options) -> dict:
    """Returns what `estimates.estimate` is to know of the vocabulary-wide outputs.

    Args:
        config: of the model.
        options: `run_options.RunPretrainingOptions`.
    """
    if config.is_causal:
        return {"num_predictions": options.max_seq_length, "keeps_logits": False}
    return {"num_predictions": options.max_predictions_per_seq}
