"""The setup of a multiple choice run: its task, model configuration and examples."""

import dataclasses
import os

from bert_tf import progress as progress_module
from bert_tf.data import named_datasets
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.tasks.multiple_choice import data_sets
from bert_tf.tasks.multiple_choice import examples as examples_module
from bert_tf.tasks.multiple_choice import options as multiple_choice_options
from bert_tf.tasks.multiple_choice import task as task_module
from bert_tf.training import result_files

# Options that a finished run fixes.
_FIXED = ("max_seq_length", "do_lower_case")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSetup(fine_tuning_run_setup.RunSetup):
    """The setup shared by all tasks, and the examples."""

    task: task_module.Task
    # Of the sets that the run needs, among "train", "dev" and "test".
    examples: dict[str, list[examples_module.ChoiceExample]]
    paths: dict[str, str]  # The file of each set.


def prepare(
    options: multiple_choice_options.RunSwagOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> RunSetup:
    """Returns the setup of a run. Reads all its tables.

    If the run trains, the options describe the task. Otherwise `task.json` in
    `output_dir` does, or the options if there is none.

    Raises:
        OSError, ValueError: a file is missing or damaged, or files and options
            contradict each other.
    """
    trained = fine_tuning_run_setup.trained_task(options, task_module.Task)
    if trained is not None:
        fine_tuning_run_setup.check_given_values(options, trained, _FIXED)
    start = fine_tuning_run_setup.find_start(options, trained, progress=progress)
    known = examples_module.Columns() if trained is None else trained.columns
    columns = columns_of(options, known)
    paths = {
        name: path
        for name, path in paths_of(options).items()
        if name in options.sets_to_read and path is not None
    }
    num_endings = None if trained is None else trained.num_endings
    examples = _read_examples(paths, columns, num_endings)
    task = trained or task_module.Task(
        num_endings=len(next(iter(examples.values()))[0].endings),
        max_seq_length=options.max_seq_length,
        **start.tokenizer_arguments(),
        start_column=columns.start,
        ending_columns=columns.endings,
        label_column=columns.label,
        header=columns.header or (),
    )
    setup = RunSetup(
        task=task,
        start=start,
        examples=examples,
        paths=paths,
        data_sets=_data_sets(options),
    )
    _check_head(options, setup)
    fine_tuning_run_setup.check(setup, options, longest_sequence=task.max_seq_length)
    return setup


def columns_of(
    options: multiple_choice_options.RunSwagOptions, known: examples_module.Columns
) -> examples_module.Columns:
    """Returns the columns of the data; `known` supplies those without a flag."""
    if options.tfds_name is not None:
        declared = named_datasets.declared(data_sets.TFDS_COLUMNS, options.tfds_name)
        known = declared or known
    elif options.data_dir is not None:
        return data_sets.layout_of(options.data_dir).columns
    return examples_module.Columns(
        start=options.start_column or known.start,
        endings=options.ending_columns or known.endings,
        label=options.label_column or known.label,
        header=options.header or known.header,
    )


def paths_of(
    options: multiple_choice_options.RunSwagOptions,
) -> dict[str, str | None]:
    """Returns the paths of "train", "dev" and "test"; None for a file not given."""
    if options.tfds_name is not None:
        return {
            part: named_datasets.part_file(
                options,
                number,
                data_sets.tfds_lines,
                ".jsonl",
                is_needed=part in options.sets_to_read,
            )
            for number, part in enumerate(("train", "dev", "test"))
        }
    if options.data_dir is None:
        return {
            "train": options.train_file,
            "dev": options.eval_file,
            "test": options.predict_file,
        }
    layout = data_sets.layout_of(options.data_dir)
    return {
        "train": os.path.join(options.data_dir, layout.train_file),
        "dev": os.path.join(options.data_dir, layout.eval_file),
        "test": os.path.join(options.data_dir, layout.predict_file),
    }


def _data_sets(options):
    """Returns the data that the options name, by set."""
    return {
        name: result_files.file_data_set(path)
        if options.data_dir is None or options.tfds_name is not None
        else result_files.folder_data_set(options.data_dir, path)
        for name, path in paths_of(options).items()
        if path is not None
    }


def _read_examples(paths, columns, num_endings):
    """Returns the examples of each file.

    All files must have the same number of endings, because shapes are static and the
    loss of the model was trained for that number of choices.
    """
    read = {}
    for name, path in paths.items():
        own = columns.without_label() if name == "test" else columns
        read[name] = examples_module.read_examples(
            path, own, name, num_endings=num_endings
        )
        num_endings = len(read[name][0].endings)
    return read


def _check_head(options, setup):
    """Checks that a model that is applied without training has a trained head."""
    head = fine_tuning_run_setup.head_to_apply(options, setup.source)
    if head is None:
        return
    # Without a task.json, a head with one output is assumed to be a classifier's.
    may_fit = head.num_labels == 1 and not head.is_known
    if head.kind != setup.task.KIND and not may_fit:
        raise ValueError(
            f"{options.init_checkpoint} has no multiple choice head, so it was not "
            "fine-tuned for multiple choice; train first (--do_train)."
        )
