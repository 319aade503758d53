"""Prepares a tagging run: its task, start and sentences."""

import dataclasses
import os
import typing
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import progress as progress_module
from bert_tf.data import named_datasets
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.tasks.token_classification import examples
from bert_tf.tasks.token_classification import labels as labels_module
from bert_tf.tasks.token_classification import options as token_classification_options
from bert_tf.tasks.token_classification import plain_text
from bert_tf.tasks.token_classification import predictions
from bert_tf.tasks.token_classification import schemes
from bert_tf.tasks.token_classification import task as task_module
from bert_tf.tasks.token_classification import tfds_columns
from bert_tf.tasks.token_classification import true_casing
from bert_tf.tasks.token_classification import words as words_module
from bert_tf.training import result_files

FILES = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
# Options that a finished run fixes.
_FIXED = (
    "max_seq_length",
    "do_lower_case",
    "doc_stride",
    "document_context",
    "feature_based",
    "tag_scheme",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSetup(fine_tuning_run_setup.RunSetup):
    """The inputs of a run, read and checked before a model is built."""

    task: task_module.Task
    # By set: "train", "dev", "test", if the run needs them.
    sentences: Mapping[str, Sequence[examples.Sentence]]


def prepare(
    options: token_classification_options.RunNerOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> RunSetup:
    """Reads and checks the files of a run.

    Training takes the task from the options. Evaluation and prediction take it from
    task.json in `output_dir`, or from the options if there is no such file. All files
    are read first, so an error in the last one is reported before training.

    Args:
        options: the options of the run.
        progress: reports a download.

    Raises:
        OSError, ValueError: a file is missing or damaged, or files and options
            contradict each other.
    """
    trained = fine_tuning_run_setup.trained_task(options, task_module.Task)
    start = fine_tuning_run_setup.find_start(options, trained, progress=progress)
    head = _checked_head(options, start.source)
    sentences: dict[str, Sequence[examples.Sentence]] = {}
    if trained is not None:
        task = _task_of_run(options, trained)
    else:
        columns = _columns(options)
        if options.trains:
            path = path_of(options, "train")
            sentences["train"] = examples.read_sentences(path, columns)
        task = _task_of_options(options, start, columns=columns, sentences=sentences)
    _check_order(options, head, task)
    for set_type in options.sets_to_read:
        if set_type not in sentences:
            sentences[set_type] = _read(options, set_type, task)
        _check_sentences(options, task, set_type, sentences[set_type])
    setup = RunSetup(
        task=task,
        start=start,
        sentences=sentences,
        data_sets=_data_sets(options),
        predictions_file=predictions.PREDICTIONS_FILE
        if not is_plain_text(options, "test")
        else plain_text.PREDICTIONS_FILE,
    )
    fine_tuning_run_setup.check(
        setup,
        options,
        longest_sequence=task.max_seq_length,
        # They are not among the settings of the run, and older runs lack them.
        may_change=("whole_words",),
    )
    return setup


def path_of(options: token_classification_options.RunNerOptions, set_type: str) -> str:
    """Returns the path of the train, dev or test file."""
    if set_type == "test" and options.predict_file is not None:
        return options.predict_file
    if options.tfds_name is not None:
        return typing.cast(str, _tfds_path(options, set_type, is_needed=True))
    return os.path.join(options.data_dir or "", FILES[set_type])


def _tfds_path(options, set_type, *, is_needed):
    number = list(FILES).index(set_type)
    lines = tfds_columns.lines_of
    return named_datasets.part_file(options, number, lines, ".txt", is_needed=is_needed)


def is_plain_text(
    options: token_classification_options.RunNerOptions, set_type: str
) -> bool:
    """Returns whether a set is plain text rather than a column file."""
    return set_type == "test" and options.predict_file is not None


def _data_sets(options):
    """Returns the data that the options name, by set."""
    found = {}
    if options.tfds_name is not None:
        for name in FILES:
            path = _tfds_path(options, name, is_needed=name in options.sets_to_read)
            if path is not None:
                found[name] = result_files.file_data_set(path)
    elif options.data_dir:
        found = {
            name: result_files.folder_data_set(options.data_dir, path_of(options, name))
            for name in FILES
        }
    if options.predict_file is not None:
        found["test"] = result_files.file_data_set(options.predict_file)
    return found


def _read(options, set_type, task):
    path = path_of(options, set_type)
    if is_plain_text(options, set_type):
        whole_words = frozenset(task.whole_words)
        return plain_text.read_sentences(path, whole_words=whole_words)
    return examples.read_sentences(path, task.columns)


def _task_of_options(options, start, *, columns, sentences):
    labels = labels_module.given_labels(options)
    if "train" in sentences:
        tags = [sentence.tags for sentence in sentences["train"]]
        scheme = _scheme(options, schemes.recognize_scheme, tags)
        path = path_of(options, "train")
        labels = labels or tuple(labels_module.labels_of_training(path, tags, scheme))
    else:
        labels = labels or _labels_of_head(options, start.source)
        scheme = _scheme(options, schemes.scheme_of_labels, labels)
    return task_module.Task(
        labels=tuple(labels),
        tag_scheme=scheme,
        max_seq_length=options.max_seq_length,
        doc_stride=options.stride,
        **start.tokenizer_arguments(),
        document_context=options.document_context,
        feature_based=options.feature_based,
        word_column=columns.word,
        tag_column=columns.word + 1 if columns.tag is None else columns.tag,
        true_cases=_true_cases(options, sentences),
        whole_words=words_module.learned_whole_words(
            sentence.words for sentence in sentences.get("train", ())
        ),
    )


def _task_of_run(options, trained):
    labels = labels_module.given_labels(options)
    if labels and labels != trained.labels:
        raise ValueError(
            f"--labels={','.join(labels)}, but the model in {options.output_dir} was "
            f"trained with {','.join(trained.labels)}; omit --labels."
        )
    if options.true_case and trained.true_cases is None:
        raise ValueError(
            f"--true_case, but the model in {options.output_dir} was trained without "
            "it; omit --true_case."
        )
    fine_tuning_run_setup.check_given_values(options, trained, _FIXED)
    given = {
        name: getattr(options, name)
        for name in ("word_column", "tag_column")
        if getattr(options, name) is not None
    }
    return dataclasses.replace(trained, **given)


def _columns(options):
    columns = examples.Columns(word=options.word_column or 0, tag=options.tag_column)
    if not options.trains:
        if options.do_eval:
            return examples.resolved_columns(path_of(options, "dev"), columns)
        if columns.tag is None and not options.predict_file:
            raise ValueError(
                f"{options.output_dir} contains no task.json, so the tag column of "
                "test.txt is unknown; set --tag_column."
            )
        return columns
    return examples.resolved_columns(path_of(options, "train"), columns)


def _scheme(options, recognized, tags):
    """Returns --tag_scheme, or the recognized scheme of tags for "auto"."""
    if options.tag_scheme != token_classification_options.AUTO:
        return options.tag_scheme
    return recognized(tags)


def _labels_of_head(options, source):
    if source is None or not source.head.labels:
        raise ValueError(
            f"The tags of {options.init_checkpoint} are unknown; list them with "
            "--labels in the order of its outputs."
        )
    return source.head.labels


def _true_cases(options, sentences):
    if not options.true_case:
        return None
    if "train" not in sentences:
        raise ValueError(
            f"--true_case learns from train.txt, but {options.output_dir} contains no "
            "training run; omit it, or train first (--do_train)."
        )
    return true_casing.learned_cases(one.words for one in sentences["train"])


def _check_sentences(options, task, set_type, sentences):
    """Checks the sentences of a file against the task."""
    path = path_of(options, set_type)
    if is_plain_text(options, set_type):
        return
    if task.document_context and not examples.has_documents(sentences):
        raise ValueError(
            f"{path} has no line that starts with -DOCSTART-, so its sentences "
            "cannot be grouped into documents; omit --document_context."
        )
    # The tags of a test file are optional and used for scores only.
    if set_type != "test":
        examples.check_tags(path, sentences, task.tag_scheme)
        examples.check_known(path, sentences, task.labels)


def _checked_head(options, source):
    """Returns the head that is applied without training; refuses an untrained one."""
    head = fine_tuning_run_setup.head_to_apply(options, source)
    if head is None:
        return None
    # The release's names alone do not distinguish a tag head from a classifier's.
    may_be_tags = head.kind == "classification" and not head.is_known
    if head.kind != task_module.Task.KIND and not may_be_tags:
        raise ValueError(
            f"{options.init_checkpoint} has a head of kind {head.kind!r} and no "
            "tag head, so it was not fine-tuned to tag words; train first "
            "(--do_train)."
        )
    return head


def _check_order(options, head, task):
    """Checks that --labels has the order of the head that is applied."""
    if head is not None:
        fine_tuning_run_setup.check_label_order(
            options.init_checkpoint,
            head,
            task.labels,
            advice="omit --labels and --label_list, or pass --labels=",
        )
