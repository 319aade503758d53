"""What a run works on: task, data, vocabulary and model size, checked together."""

import dataclasses
import os

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import config as config_module
from bert_tf.tasks.multiple_choice import data_sets
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from bert_tf.tasks.multiple_choice import task as task_module
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything a run needs to know before it builds a model."""

    task: task_module.Task  # What task.json will say, or says already.
    # "train", "dev", "test" -> examples, for what is to be done.
    examples: dict[str, list[examples_module.ChoiceExample]]
    paths: dict[str, str]  # "train", "dev", "test" -> the file that they are from.
    config: config_module.BertConfig  # Size of the model.
    vocabulary: vocabulary_module.Vocabulary  # Pieces of the model.


def prepare(
    options: multiple_choice_options.RunSwagOptions,
    *,
    progress=progress_module.silent,
) -> Inputs:
    """Returns what a run works on, all its tables read.

    Training takes it from the options. Evaluating and predicting take it from
    `output_dir`, where training left it, or else from the options.

    Raises:
        OSError: a file cannot be read.
        ValueError: options, files and `output_dir` do not fit together.
    """
    trains = options.do_train or options.dry_run
    is_run = files.exists(os.path.join(options.output_dir, "task.json"))
    if trains or not is_run:
        inputs = _from_options(options, progress)
    else:
        inputs = _from_run(options)
    if trains and is_run:
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


def _from_options(options, progress):
    start = starting_point.of_options(options, progress=progress)
    columns = columns_of(options, examples_module.Columns())
    read, paths = _read_examples(options, columns, None)
    task = task_module.Task(
        num_endings=len(next(iter(read.values()))[0].endings),
        max_seq_length=options.max_seq_length,
        do_lower_case=start.do_lower_case,
        start_column=columns.start,
        ending_columns=columns.endings,
        label_column=columns.label,
        header=columns.header or (),
    )
    return Inputs(
        task=task,
        examples=read,
        paths=paths,
        config=start.config,
        vocabulary=start.vocabulary,
    )


def _from_run(options):
    run_dir = options.output_dir
    task = read_task(run_dir)
    columns = columns_of(options, task.columns)
    read, paths = _read_examples(options, columns, task.num_endings)
    return Inputs(
        task=task,
        examples=read,
        paths=paths,
        config=run_files.read_config(run_dir),
        vocabulary=run_files.read_vocabulary(run_dir),
    )


def columns_of(options, known):
    """Returns the columns of the options' data; `known` is for those left out."""
    if options.data_dir is not None:
        return data_sets.layout_of(options.data_dir).columns
    return examples_module.Columns(
        start=options.start_column or known.start,
        endings=options.ending_columns or known.endings,
        label=options.label_column or known.label,
        header=options.header or known.header,
    )


def _read_examples(options, columns, num_endings):
    """Returns the examples and the paths of what is to be done, by "train" and so on.

    All files must have as many endings: shapes are static, and a model that chooses
    among four was not trained to choose among five.
    """
    wanted = {
        "train": options.do_train or options.dry_run,
        "dev": options.do_eval or (options.do_train and options.eval_every_steps > 0),
        "test": options.do_predict,
    }
    paths = {name: path for name, path in paths_of(options).items() if wanted[name]}
    read = {}
    for name, path in paths.items():
        own = columns.without_label() if name == "test" else columns
        read[name] = examples_module.read_examples(
            path, own, name, num_endings=num_endings
        )
        num_endings = len(read[name][0].endings)
    return read, paths


def paths_of(options) -> dict[str, str | None]:
    """Returns the paths of "train", "dev" and "test"; None where there is none."""
    if options.data_dir is None:
        files_given = (options.train_file, options.eval_file, options.predict_file)
        return dict(zip(("train", "dev", "test"), files_given, strict=True))
    layout = data_sets.layout_of(options.data_dir)
    return {
        "train": os.path.join(options.data_dir, layout.train_file),
        "dev": os.path.join(options.data_dir, layout.eval_file),
        "test": os.path.join(options.data_dir, layout.predict_file),
    }


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
    # Without a task.json a head of one output is taken for a classifier's.
    if head.kind != task_module.KIND and (head.is_known or head.num_labels != 1):
        raise ValueError(
            f"{options.init_checkpoint} has no head for multiple choice, so it was not "
            "fine-tuned to choose; train first (--do_train)."
        )
