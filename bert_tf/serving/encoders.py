"""Loads an encoder or ranker without fine-tuning, to export it."""

from typing import cast

from bert_tf import progress as progress_module
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.serving import options as serving_options
from bert_tf.tasks.retrieval import predictor as retrieval_predictor

_MAX_SEQ_LENGTH = 128  # If neither the caller nor the checkpoint sets it.


def load(
    options: serving_options.ExportSavedModelOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> retrieval_predictor.TextEmbedder | retrieval_predictor.CrossEncoderPredictor:
    """Returns the predictor of a checkpoint in any format.

    A checkpoint without a ranker's head is a bi-encoder, which treats queries and
    passages alike unless the checkpoint has prompts for them.

    Args:
        options: options with an init_checkpoint.
        progress: called during a download; see `bert_tf.progress`.

    Raises:
        OSError: the checkpoint cannot be read.
        ValueError: the checkpoint lacks weights or a file that describes it.
    """
    start = starting_point.find(
        options.init_checkpoint,
        bert_config_file=options.bert_config_file,
        vocab_file=options.vocab_file,
        do_lower_case=options.do_lower_case,
        progress=progress,
    )
    text = cast(source_module.Source, start.source).text
    settings = fine_tuning_predictor.LoadSettings(
        start=start,
        has_task_file=False,
        pooling=options.pooling,
        max_seq_length=options.max_seq_length or text.max_seq_length or _MAX_SEQ_LENGTH,
    )
    return retrieval_predictor.load_checkpoint(str(options.init_checkpoint), settings)
