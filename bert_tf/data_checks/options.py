"""Options of check_data: the data flags of all tasks' tools."""

import dataclasses
from typing import Any

from bert_tf import options as options_module
from bert_tf.data_checks import tasks
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckDataOptions(options_module.Options):
    """Checks the data of a task in seconds, before training starts.

    Reports counts, label balance, duplicates and overlap between the sets, truncated
    texts, unknown words, casing, misplaced answers and invalid tags, and estimates the
    memory and time of training. The exit code is 1 if there are errors.

    The flags are those of the task's own tool, with the same defaults. Those of
    --task=pretraining are the flags of create_pretraining_data.
    """

    task: str = option(
        choices=tuple(tasks.TASKS), help="The task that the data is for."
    )
    init_checkpoint: str | None = option(
        None,
        help="Checkpoint that training would start from. It provides vocabulary, "
        "casing and configuration.",
        group="model",
    )
    bert_config_file: str | None = option(
        None,
        help="JSON file with the model configuration. Default: the configuration of "
        "init_checkpoint.",
        group="model",
    )
    vocab_file: str | None = option(
        None,
        help="Vocabulary file. Default: the vocabulary of init_checkpoint.",
        group="model",
    )
    do_lower_case: bool | None = option(
        None,
        help="Lowercase the text, as in the planned run. Default: true. For "
        "multiple_choice and retrieval: as recorded in the checkpoint.",
        group="model",
    )
    max_seq_length: int | None = option(
        None,
        minimum=3,
        help="Maximum number of word pieces per sequence. Default: 384 for "
        "question_answering, 128 for the other tasks.",
        group="model",
    )
    task_name: str | None = option(
        None, help="classification: GLUE task or XNLI, in data_dir."
    )
    train_language: tuple[str, ...] = option(
        (), help="classification: XNLI languages to train on."
    )
    eval_language: tuple[str, ...] = option(
        (), help="classification: XNLI languages to evaluate on."
    )
    tfds_name: str | None = option(
        None,
        help="TensorFlow dataset to use instead of files; not for retrieval and "
        "pretraining.",
    )
    tfds_splits: tuple[str, ...] = option(
        (), help="Splits of tfds_name for training, evaluation and prediction."
    )
    data_dir: str | None = option(
        None,
        help="classification, multiple_choice, token_classification: folder with the "
        "training, development and test files. With tfds_name: the folder of "
        "TensorFlow Datasets.",
    )
    train_file: tuple[str, ...] = option(
        (), help="Your own file to train on. question_answering accepts several."
    )
    eval_file: str | None = option(
        None,
        help="classification, multiple_choice, retrieval: your own file to evaluate "
        "on.",
    )
    predict_file: str | None = option(
        None,
        help="Your own file to predict. For question_answering: the file to evaluate "
        "on.",
    )
    validation_split: float | None = option(
        None,
        minimum=0.0,
        maximum=0.5,
        help="classification: share of train_file to hold out for evaluation.",
    )
    text_column: str | None = option(None, help="classification: column of the text.")
    text_b_column: str | None = option(
        None, help="classification: column of the second text of each pair."
    )
    label_column: str | None = option(
        None, help="classification, multiple_choice: column of the label."
    )
    labels: tuple[str, ...] = option(
        (), help="classification, token_classification: all labels."
    )
    label_separator: str | None = option(
        None,
        help="classification: separator between class names, if a text can have "
        "several.",
    )
    regression: bool | None = option(
        None, help="classification: the labels are numbers."
    )
    start_column: str | None = option(
        None, help="multiple_choice: column of the start of the text."
    )
    ending_columns: tuple[str, ...] = option(
        (), help="multiple_choice: columns of the endings."
    )
    header: tuple[str, ...] = option(
        (),
        help="multiple_choice: names of all columns, for files without a header line.",
    )
    word_column: int | None = option(
        None,
        minimum=0,
        help="token_classification: column of the words, counted from 0.",
    )
    tag_column: int | None = option(
        None,
        minimum=0,
        help="token_classification: column of the tags, counted from 0.",
    )
    tag_scheme: str | None = option(
        None, help="token_classification: scheme of the tags."
    )
    doc_stride: int | None = option(
        None,
        minimum=1,
        help="classification, question_answering, token_classification: distance "
        "between the starts of two consecutive windows, in word pieces.",
        group="model",
    )
    document_context: bool | None = option(
        None,
        help="token_classification: use windows over whole documents.",
        group="model",
    )
    max_query_length: int | None = option(
        None,
        minimum=1,
        help="question_answering, retrieval: maximum number of word pieces of a "
        "question or query.",
        group="model",
    )
    corpus_file: str | None = option(None, help="retrieval: passages to search.")
    model: str | None = option(
        None, help="retrieval: bi_encoder (default) or cross_encoder."
    )
    num_negatives: int | None = option(
        None,
        minimum=0,
        help="retrieval: wrong passages per query, for the estimate.",
        group="training",
    )
    version_2_with_negative: bool | None = option(
        None, help="question_answering: some questions have no answer."
    )
    input_file: tuple[str, ...] = option(
        (), help="pretraining: text files; names and globs."
    )
    dupe_factor: int | None = option(
        None, minimum=1, help="pretraining: number of passes over the text."
    )
    train_batch_size: int | None = option(
        None,
        minimum=1,
        help="Batch size, for the estimate. Default: as in training.",
        group="training",
    )
    num_train_epochs: float | None = option(
        None,
        minimum=0.0,
        help="Number of epochs, for the estimate. Default: as in training.",
        group="training",
    )

    def given(self) -> dict[str, Any]:
        """Returns the values that were given for the task's own tool, by name."""
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "task"
        }
        return {name: v for name, v in values.items() if v not in (None, ())}
