"""The setup of a classification run: its task, model configuration and data."""

import dataclasses

from bert_tf import progress as progress_module
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.tasks.classification import data_options
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import own_tables
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import processors
from bert_tf.tasks.classification import task as task_module
from bert_tf.training import result_files

# Options that a finished run fixes.
_FIXED = ("max_seq_length", "do_lower_case", "doc_stride", "bilstm_on_top")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSetup(fine_tuning_run_setup.RunSetup):
    """The setup shared by all tasks, and the processor that reads the data."""

    task: task_module.Task
    processor: examples_module.DataProcessor
    # Of the data, whose task may differ from the one that the model was trained on.
    task_name: str | None


def prepare(
    options: classification_options.RunClassifierOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> RunSetup:
    """Returns the setup of a run.

    If the run trains, the options describe the task. Otherwise `task.json` in
    `output_dir` does, or the options if there is none.

    Raises:
        OSError, ValueError: a file is missing or damaged, or files and options
            contradict each other.
    """
    trained = fine_tuning_run_setup.trained_task(options, task_module.Task)
    if trained is not None:
        _check_labels(options, trained)
        fine_tuning_run_setup.check_given_values(options, trained, _FIXED)
    start = fine_tuning_run_setup.find_start(options, trained, progress=progress)
    data = processors.data_of(options, trained)
    _check_threshold(options, data.columns.kind)
    if trained is None:
        task = _task_of_options(options, data, start)
        if not options.trains and start.source is not None:
            task = _task_of_ranker(options, task, start.source.text)
    else:
        _check_same_kind(data, trained, options.output_dir)
        _check_same_hold_out(options, data, trained)
        task = trained
        if options.threshold is not None:
            task = dataclasses.replace(task, threshold=options.threshold)
    setup = RunSetup(
        task=task,
        start=start,
        processor=data.processor,
        task_name=data.task_name,
        data_sets=_data_sets(options, data.processor),
        is_held_out=options.validation_split > 0,
    )
    _check_head(options, setup)
    fine_tuning_run_setup.check(setup, options, longest_sequence=task.max_seq_length)
    return setup


def training_data_sets(
    options: classification_options.RunClassifierOptions,
) -> dict[str, result_files.DataSet]:
    """Returns the data that the options of a training name, by set.

    Raises:
        OSError, ValueError: the TensorFlow dataset cannot be read.
    """
    return _data_sets(options, processors.data_of(options).processor)


def _data_sets(options, processor):
    """Returns the data that the options name, by set."""
    paths = processor.get_files(options.data_dir)
    trained = processor.get_train_files(options.data_dir)
    found = {}
    for number, part in enumerate(("train", "dev", "test")):
        own = trained
        if part != "train":
            own = [path for name, path in paths.items() if name.startswith(part)]
        name = options.task_name
        if options.tfds_name and data_options.is_xnli(options.tfds_name):
            name = "xnli"
            if part not in options.sets_to_read:
                continue  # It would have to be downloaded.
        if name is not None:
            languages = processor.get_eval_languages() if part != "train" else ()
            if languages and part not in options.sets_to_read:
                continue  # A later command chooses the languages.
            name = "_".join([name.lower(), *sorted(languages)])
        elif options.tfds_name is not None:
            name = f"{options.tfds_name} {options.tfds_splits[number]}"
        elif own:
            name = result_files.stem(own[0])
            if part == "dev" and options.validation_split:
                name += "_held_out"
        else:
            continue
        found[part] = result_files.DataSet(name=name, paths=tuple(own))
    return found


def _task_of_options(options, data, start):
    columns = data.columns
    threshold = None
    if columns.kind == label_kinds.MULTI_LABEL:
        threshold = options.threshold
        if threshold is None:
            threshold = classification_predictions.DEFAULT_THRESHOLD
    sha256 = None
    if isinstance(data.processor, own_tables.TableProcessor):
        sha256 = data.processor.get_held_out_fingerprint()
    return task_module.Task(
        labels=tuple(data.processor.get_labels()),
        max_seq_length=options.max_seq_length,
        **start.tokenizer_arguments(),
        task_name=data.task_name,
        text_column=columns.text,
        text_b_column=columns.text_b,
        label_column=columns.label,
        label_kind=columns.kind,
        label_separator=columns.separator,
        validation_split=options.validation_split,
        validation_sha256=sha256,
        threshold=threshold,
        doc_stride=options.doc_stride,
        bilstm_on_top=options.bilstm_on_top,
    )


def _task_of_ranker(options, task, text):
    """Returns the task with which an external ranker computes its own scores."""
    if text.output_activation is None:
        return task
    if options.max_seq_length != text.max_seq_length:
        raise ValueError(
            f"{options.init_checkpoint} reads up to {text.max_seq_length} word pieces, "
            f"but --max_seq_length={options.max_seq_length}; pass "
            f"--max_seq_length={text.max_seq_length} for its own scores."
        )
    if text.prompt():
        raise ValueError(
            f"{options.init_checkpoint} has the prompt {text.prompt()!r:.60}, which "
            "run_classifier does not support; use run_retrieval --model=cross_encoder."
        )
    return dataclasses.replace(
        task, output_activation=text.output_activation, longer_keeps_more=True
    )


def _check_threshold(options, kind):
    if options.threshold is not None and kind != label_kinds.MULTI_LABEL:
        raise ValueError(
            f"--threshold={options.threshold:g} requires texts with several classes "
            "(--label_separator), but this data has one label per text."
        )


def _check_labels(options, trained):
    if not options.labels or options.labels == trained.labels:
        return
    raise ValueError(
        f"--labels={','.join(options.labels)}, but the model in {options.output_dir} "
        f"was trained with {','.join(trained.labels)}; omit --labels."
    )


def _check_same_kind(data, task, run_dir):
    """Checks that the data has the texts and labels that the model was trained on."""
    if (data.columns.text_b is not None) != task.is_pair:
        kind = "pairs of texts" if task.is_pair else "single texts"
        raise ValueError(
            f"The model in {run_dir} was trained on {kind}, but the data has another "
            "form; change the data (see --task_name and --text_b_column)."
        )
    if data.columns.kind != task.label_kind:
        raise ValueError(
            f"The model in {run_dir} was trained on {task.label_kind} labels, but the "
            f"data has {data.columns.kind} labels."
        )
    labels = data.processor.get_labels()
    if list(task.labels) != labels:
        raise ValueError(
            f"The model in {run_dir} has the classes {', '.join(task.labels)}, but the "
            f"data has {', '.join(labels)}; choose data with the same classes."
        )


def _check_same_hold_out(options, data, task):
    """Checks that the held-out examples are those that the model did not see."""
    if not options.validation_split:
        return
    if data.processor.get_held_out_fingerprint() != task.validation_sha256:
        trained_with = (
            f"with --validation_split={task.validation_split:g}"
            if task.validation_split
            else "without --validation_split"
        )
        raise ValueError(
            f"The model in {options.output_dir} was trained {trained_with}, but "
            f"--validation_split={options.validation_split:g} of {options.train_file} "
            "holds out other examples, or the file has changed; evaluate a file that "
            "was not used in training (--eval_file)."
        )


def _check_head(options, setup):
    """Checks that the head of a model applied without training fits the task."""
    head = fine_tuning_run_setup.head_to_apply(options, setup.source)
    if head is None:
        return
    path, kind = options.init_checkpoint, setup.task.label_kind
    if head.kind != setup.task.KIND:
        raise ValueError(
            f"{path} has no classifier head (output_weights), so it was not fine-tuned "
            "for classification; train first (--do_train)."
        )
    # A checkpoint may leave the kind out, and is then taken for a single-label one.
    if head.label_kind == label_kinds.MULTI_LABEL != kind:
        raise ValueError(
            f"{path} was trained on {head.label_kind} labels, but the data has {kind} "
            "labels; pass --label_separator."
        )
    advice = "pass --labels="
    if not isinstance(setup.processor, own_tables.TableProcessor):
        advice = (
            "write the data to your own tables (--eval_file, --predict_file) and pass "
            "--labels="
        )
    fine_tuning_run_setup.check_label_order(
        path, head, setup.task.labels, advice=advice
    )
