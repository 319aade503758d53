"""Options of check_data: those of the tasks' tools that concern their data."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option

TASKS = (
    "classification",
    "multiple_choice",
    "pretraining",
    "question_answering",
    "retrieval",
    "token_classification",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckDataOptions(options_module.Options):
    """Checks the data of a task, in seconds, before anyone trains on them.

    Counts, balance and rare labels, duplicates and overlap, what is cut, unknown words,
    casing, answers and tags that do not fit, and what training would take. Exit code 1
    where there are errors. Flags are those of the task's own tool, with its defaults;
    pretraining's are those of create_pretraining_data.

        check_data --task=classification --task_name=mrpc --data_dir=MRPC \\
            --init_checkpoint=uncased_L-12_H-768_A-12/bert_model.ckpt
    """

    task: str = option(choices=TASKS, help="Whose data they are.")
    init_checkpoint: str | None = option(
        None, help="Checkpoint to train from: its vocabulary, casing and size."
    )
    bert_config_file: str | None = option(
        None, help="JSON file with the model's size; default: as init_checkpoint says."
    )
    vocab_file: str | None = option(
        None, help="Vocabulary; default: that of init_checkpoint."
    )
    do_lower_case: bool | None = option(
        None, help="As the run will have it; default: as init_checkpoint says, or True."
    )
    max_seq_length: int | None = option(
        None, minimum=3, help="The most pieces of a sequence; default: the tool's."
    )
    task_name: str | None = option(
        None, help="classification: a task of GLUE, or XNLI, with data_dir."
    )
    train_language: tuple[str, ...] = option(
        (), help="classification: XNLI's languages to train on."
    )
    eval_language: tuple[str, ...] = option(
        (), help="classification: XNLI's languages to evaluate on."
    )
    tfds_name: str | None = option(
        None, help="classification: a TensorFlow dataset instead of files."
    )
    tfds_splits: tuple[str, ...] = option(
        (), help="classification: its splits of training, development and test."
    )
    data_dir: str | None = option(
        None,
        help="classification, multiple_choice, token_classification: folder with the "
        "files of training, development and test.",
    )
    train_file: tuple[str, ...] = option(
        (), help="Your own file to train on; question_answering takes several."
    )
    eval_file: str | None = option(
        None,
        help="classification, multiple_choice, retrieval: your own file to evaluate "
        "on.",
    )
    predict_file: str | None = option(
        None, help="Your own file to predict, or for question_answering to score."
    )
    text_column: str | None = option(None, help="classification: column of the text.")
    text_b_column: str | None = option(
        None, help="classification: column of the second text."
    )
    label_column: str | None = option(
        None, help="classification, multiple_choice: column of the class."
    )
    labels: tuple[str, ...] = option(
        (), help="classification, token_classification: all classes."
    )
    label_separator: str | None = option(
        None, help="classification: between the classes of a text that may have many."
    )
    regression: bool | None = option(
        None, help="classification: the labels are numbers."
    )
    start_column: str | None = option(
        None, help="multiple_choice: column of the start."
    )
    ending_columns: tuple[str, ...] = option(
        (), help="multiple_choice: columns of the endings."
    )
    header: tuple[str, ...] = option(
        (), help="multiple_choice: names of all columns of files without them."
    )
    word_column: int | None = option(
        None, minimum=0, help="token_classification: column of the words, from 0."
    )
    tag_column: int | None = option(
        None, minimum=0, help="token_classification: column of the tags, from 0."
    )
    tag_scheme: str | None = option(
        None, help="token_classification: scheme of the tags."
    )
    doc_stride: int | None = option(
        None,
        minimum=1,
        help="classification, question_answering, token_classification: see there.",
    )
    document_context: bool | None = option(
        None, help="token_classification: windows go over whole documents."
    )
    max_query_length: int | None = option(
        None,
        minimum=1,
        help="question_answering, retrieval: the most pieces of a question.",
    )
    corpus_file: str | None = option(
        None, help="retrieval: the passages that are searched."
    )
    model: str | None = option(
        None, help="retrieval: bi_encoder (default) or cross_encoder."
    )
    num_negatives: int | None = option(
        None,
        minimum=0,
        help="retrieval: wrong passages of each query, for the estimate.",
    )
    version_2_with_negative: bool | None = option(
        None, help="question_answering: there may be questions without an answer."
    )
    input_file: tuple[str, ...] = option(
        (), help="pretraining: text files; names and patterns."
    )
    dupe_factor: int | None = option(
        None, minimum=1, help="pretraining: passes over the text."
    )
    train_batch_size: int | None = option(
        None, minimum=1, help="For the estimate; default: the tool's."
    )
    num_train_epochs: float | None = option(
        None, minimum=0.0, help="For the estimate; default: the tool's."
    )

    def given(self) -> dict:
        """Returns what was given for the task's own tool, by name."""
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "task"
        }
        return {name: v for name, v in values.items() if v not in (None, ())}
