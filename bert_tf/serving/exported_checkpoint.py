"""Loads an encoder or ranker, or another head of a checkpoint, to export it."""

import dataclasses
import functools
from typing import Any

from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from bert_tf.tasks.retrieval import predictor as retrieval_predictor

_MAX_SEQ_LENGTH = 128  # Of an encoder, if neither flag nor checkpoint sets it.


def load(
    options: serving_options.ExportSavedModelOptions,
    *,
    dtype: str,
) -> Any:
    """Returns the predictor of a checkpoint in any format.

    A checkpoint without a ranker's head is a bi-encoder, which treats queries and
    passages alike unless the checkpoint has prompts for them.

    Args:
        options: options with an init_checkpoint.
        dtype: data type of the computation.

    Raises:
        OSError: the checkpoint cannot be read.
        ValueError: the checkpoint lacks weights or a file that describes it.
    """
    start = starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
    )
    path = str(options.init_checkpoint)
    settings = fine_tuning_predictor.LoadSettings(
        start=start,
        has_task_file=False,
        dtype=backends.policy_of(dtype),
        pooling=options.pooling,
        max_seq_length=options.max_seq_length,
    )
    load_start = functools.partial(predictors.load_start, argument="--head")
    if options.head == kinds.CLASSIFICATION:
        model = load_start(path, start, settings, head=options.head)
        if options.text_pairs:
            model.task = dataclasses.replace(model.task, text_b_column="text_b")
        return model
    if options.head in (kinds.MASKED_LM, *kinds.TASK_HEADS):
        return load_start(path, start, settings, head=options.head)
    if settings.max_seq_length is None and settings.source.text.max_seq_length is None:
        settings = dataclasses.replace(settings, max_seq_length=_MAX_SEQ_LENGTH)
    if options.head is not None:
        return load_start(path, start, settings, head=options.head)
    return retrieval_predictor.load_checkpoint(path, settings)
