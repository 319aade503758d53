"""What a run works on: task, data, vocabulary and model size, checked together."""

import dataclasses
import os

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import config as config_module
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.classification import processors
from bert_tf.tasks.classification import task as task_module
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder

CLASS_WEIGHTS = "output_weights"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything a run needs to know before it builds a model."""

    task: task_module.Task  # What task.json will say, or says already.
    processor: examples_module.DataProcessor  # Reads the examples.
    task_name: str | None  # Of the data, which may be others than those of the task.
    config: config_module.BertConfig  # Size of the model.
    vocabulary: vocabulary_module.Vocabulary  # Pieces of the model.


def prepare(
    options: classification_options.RunClassifierOptions,
    *,
    progress=progress_module.silent,
) -> Inputs:
    """Returns what a run works on.

    Training takes it from the options. Evaluating and predicting take it from
    `output_dir`, where training left it, or else from the options.

    Raises:
        OSError: a file cannot be read.
        ValueError: options, files and `output_dir` do not fit together.
    """
    trains = options.do_train or options.dry_run
    if trains or not _is_run(options.output_dir):
        inputs = _from_options(options, progress)
    else:
        inputs = _from_run(options)
    if trains and _is_run(options.output_dir):
        _check_same_run(inputs, options.output_dir)
    if not trains:
        _check_trained(options)
    inputs.config.check_vocabulary_size(len(inputs.vocabulary))
    inputs.config.check_sequence_length(inputs.task.max_seq_length)
    return inputs


def read_task(run_dir: str) -> task_module.Task:
    """Returns the task of a training run's folder.

    Raises:
        OSError: the folder or its task.json cannot be read.
        ValueError: it is no run of this kind.
    """
    values = run_folder.RunFolder(run_dir).read_task()
    return task_module.Task.from_dict(values, os.path.join(run_dir, "task.json"))


def _is_run(output_dir):
    return files.exists(os.path.join(output_dir, "task.json"))


def _from_options(options, progress):
    start = starting_point.of_options(options, progress=progress)
    data = processors.data_of(options)
    columns = data.columns
    is_multi = columns.kind == label_kinds.MULTI_LABEL
    _check_threshold(options, columns.kind)
    task = task_module.Task(
        labels=tuple(data.processor.get_labels()),
        max_seq_length=options.max_seq_length,
        do_lower_case=start.do_lower_case,
        task_name=data.task_name,
        text_column=columns.text,
        text_b_column=columns.text_b,
        label_column=columns.label,
        label_kind=columns.kind,
        label_separator=columns.separator,
        threshold=_threshold(options.threshold) if is_multi else None,
        doc_stride=options.doc_stride,
        bilstm_on_top=options.bilstm_on_top,
    )
    return Inputs(
        task=task,
        processor=data.processor,
        task_name=data.task_name,
        config=start.config,
        vocabulary=start.vocabulary,
    )


def _check_threshold(options, kind):
    if options.threshold is not None and kind != label_kinds.MULTI_LABEL:
        raise ValueError(
            f"--threshold={options.threshold:g} is for texts that may have several "
            "classes (--label_separator), and these have not."
        )


def _threshold(given):
    return classification_predictions.DEFAULT_THRESHOLD if given is None else given


def _from_run(options):
    run_dir = options.output_dir
    task = read_task(run_dir)
    if options.labels and options.labels != task.labels:
        raise ValueError(
            f"--labels={','.join(options.labels)}, but the model in {run_dir} was "
            f"trained with {','.join(task.labels)}; leave --labels out."
        )
    data = processors.data_of(options, task)
    _check_same_kind(data, task, run_dir)
    _check_threshold(options, task.label_kind)
    if options.threshold is not None:
        task = dataclasses.replace(task, threshold=options.threshold)
    return Inputs(
        task=task,
        processor=data.processor,
        task_name=data.task_name,
        config=run_files.read_config(run_dir),
        vocabulary=run_files.read_vocabulary(run_dir),
    )


def _check_same_kind(data, task, run_dir):
    """Refuses data whose texts or labels the model does not know."""
    if (data.columns.text_b is not None) != task.is_pair:
        kind = "pairs of texts" if task.is_pair else "single texts"
        raise ValueError(
            f"The model in {run_dir} was trained on {kind}, but the data are not; "
            "choose data of the same kind (see --task_name and --text_b_column)."
        )
    if data.columns.kind != task.label_kind:
        raise ValueError(
            f"The model in {run_dir} was trained on labels of the kind "
            f"{task.label_kind}, but those of the data are {data.columns.kind}."
        )
    labels = data.processor.get_labels()
    if list(task.labels) != labels:
        raise ValueError(
            f"The model in {run_dir} knows the classes {', '.join(task.labels)}, but "
            f"the data have {', '.join(labels)}; choose data with the same ones."
        )


def _check_same_run(inputs, output_dir):
    """Refuses to go on training one task's checkpoint with another task's data."""
    if rotation.latest(output_dir) is None:
        return
    found = read_task(output_dir).to_dict()
    wanted = inputs.task.to_dict()
    run_files.check_same_task(output_dir, found, wanted, inputs.vocabulary)


def _check_trained(options):
    """Refuses to evaluate or to predict with a head that was never trained."""
    head = run_files.head_to_apply(options)
    if head is None:
        return
    if head.kind != "classification":
        raise ValueError(
            f"{options.init_checkpoint} has no {CLASS_WEIGHTS} of a classifier, so it "
            "was not fine-tuned to classify; train first (--do_train)."
        )
