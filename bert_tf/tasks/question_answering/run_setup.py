"""Prepares a question answering run: its task, start and questions."""

import dataclasses
import os
import typing

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints.release import rotation
from bert_tf.data import named_datasets
from bert_tf.fine_tuning import run_setup as fine_tuning_run_setup
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import task as task_module
from bert_tf.tasks.question_answering import tfds_squad
from bert_tf.training import result_files
from bert_tf.training import run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSetup(fine_tuning_run_setup.RunSetup):
    """The inputs of a run, read and checked before a model is built."""

    task: task_module.Task
    # Empty if the run does not train.
    train_examples: list[question_answering_examples.SquadExample]
    # The questions to answer. None if the run neither evaluates nor predicts.
    squad_file: question_answering_examples.SquadFile | None

    def require_squad_file(self) -> question_answering_examples.SquadFile:
        """Returns `squad_file`, which a run that evaluates or predicts always has."""
        return typing.cast(question_answering_examples.SquadFile, self.squad_file)


def prepare(
    options: question_answering_options.RunSquadOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> RunSetup:
    """Reads and checks the files of a run.

    Training takes the task from the options. Evaluation and prediction take it from
    task.json in `output_dir`, or from the options if there is no such file; then the
    rules for choosing answers are those of the run that init_checkpoint belongs to.

    Args:
        options: training reads the last `train_file`.
        progress: reports a download.

    Raises:
        OSError, ValueError: a file is missing or damaged, or files and options
            contradict each other.
    """
    trained = fine_tuning_run_setup.trained_task(options, task_module.Task)
    start = fine_tuning_run_setup.find_start(options, trained, progress=progress)
    if trained is None:
        task = _task_of_options(options, start)
    else:
        task = _task_of_run(options, trained)
    train_examples = []
    if options.trains:
        train_examples = read_training_examples(options, train_paths(options)[-1])
    setup = RunSetup(
        task=task,
        start=start,
        train_examples=train_examples,
        squad_file=_read_predict_file(options),
        data_sets=_data_sets(options),
    )
    _check_head(options, setup)
    _check_threshold(options, setup, is_run=trained is not None or options.trains)
    fine_tuning_run_setup.check(
        setup,
        options,
        longest_sequence=task.max_seq_length,
        may_change=task_module.FOR_PREDICTING,
    )
    return setup


def read_training_examples(
    options: question_answering_options.RunSquadOptions, path: str
) -> list[question_answering_examples.SquadExample]:
    """Returns the questions of a training file."""
    return question_answering_examples.training_examples(
        question_answering_examples.read_squad(path),
        version_2_with_negative=options.version_2_with_negative,
    )


def train_paths(
    options: question_answering_options.RunSquadOptions,
) -> tuple[str, ...]:
    """Returns the paths of the files to train on, one per stage."""
    if options.tfds_name is None:
        return options.train_file
    return _tfds_paths(options, 0)


def predict_path(
    options: question_answering_options.RunSquadOptions,
) -> str | None:
    """Returns the path of the file with the questions to answer, if there is one."""
    if options.tfds_name is None:
        return options.predict_file
    return next(iter(_tfds_paths(options, 1)), None)


def _tfds_paths(options, number):
    """Returns (the path of a split,), or () if it is neither present nor needed."""
    is_needed = (options.trains, options.evaluates or options.do_predict)[number]
    path = named_datasets.part_file(
        options, number, tfds_squad.squad_json_of, ".json", is_needed=is_needed
    )
    return (path,) if path else ()


def _read_predict_file(options):
    """Returns the questions to answer; with their answers, if they are scored."""
    if not (options.evaluates or options.do_predict):
        return None
    path = typing.cast(str, predict_path(options))
    squad_file = question_answering_examples.read_squad(path)
    if options.evaluates and not squad_file.has_answers:
        raise ValueError(
            f"{path} has questions without answers, so it cannot be "
            "used for evaluation; use a file with answers, or omit --do_eval and "
            "--eval_every_steps."
        )
    return squad_file


def _data_sets(options):
    """Returns the data that the options name, by set."""
    found = {}
    predicted = predict_path(options)
    if predicted:
        found["dev"] = found["test"] = result_files.file_data_set(predicted)
    trained = train_paths(options)
    if trained:
        *earlier, last = map(result_files.file_data_set, trained)
        found["train"] = dataclasses.replace(last, earlier_stages=tuple(earlier))
    return found


def _task_of_options(options, start):
    of_tokenizer = start.tokenizer_arguments()
    names = [field.name for field in dataclasses.fields(task_module.Task)]
    values = {n: getattr(options, n) for n in names if n not in of_tokenizer}
    task = task_module.Task(**values, **of_tokenizer)
    if options.trains:
        if rotation.latest(options.output_dir) is None:
            return task
        # Repeating a command must not lose a threshold that was stored since.
        own = task_module.Task.read(options.output_dir)
        return _with_stored_rules(task, own, options)
    stored = _task_beside(start.source and start.source.path)
    if stored is None:
        return task
    task = _with_stored_rules(task, stored, options)
    if stored.version_2_with_negative:
        task = dataclasses.replace(task, version_2_with_negative=True)
    return task


def _task_beside(init_checkpoint):
    """Returns the record of the run that a checkpoint belongs to, or None.

    A record of another task is left to the check of the checkpoint's head.
    """
    for folder in (init_checkpoint, os.path.dirname(init_checkpoint or "")):
        path = os.path.join(folder or "", companion_files.TASK_FILE)
        if folder and files.exists(path):
            values = run_folder.RunFolder(folder).read_task()
            if values.get("task") == task_module.Task.KIND:
                return task_module.Task.from_dict(values, path)
    return None


def _with_stored_rules(task, stored, options):
    """Returns a task that chooses answers as stored, unless a flag says otherwise."""
    values = {
        name: getattr(options if _is_given(options, name) else stored, name)
        for name in task_module.FOR_PREDICTING
    }
    return dataclasses.replace(task, **values)


def _is_given(options, name):
    return options_module.is_given(getattr(options, name))


def _task_of_run(options, trained):
    """Returns the task of the run, with the given options for choosing answers."""
    fine_tuning_run_setup.check_given_values(options, trained, task_module.FIXED)
    return _with_stored_rules(trained, trained, options)


def _check_threshold(options, setup, *, is_run):
    """Refuses a threshold without effect, and tuning if a requirement is not met."""
    may_have_no_answer = setup.task.threshold is not None
    if options.null_score_diff_threshold and not may_have_no_answer:
        raise ValueError(
            f"--null_score_diff_threshold={options.null_score_diff_threshold:g} has no "
            "effect on a model that always answers; omit it, or train with "
            "--version_2_with_negative."
        )
    if not options.tune_threshold:
        return
    if not is_run:
        raise ValueError(
            f"--tune_threshold stores the threshold in a run, but {options.output_dir} "
            "contains none; use the output_dir of the training."
        )
    if not (may_have_no_answer and setup.require_squad_file().is_version_2):
        raise ValueError(
            "--tune_threshold needs a model trained with --version_2_with_negative and "
            f"a file of SQuAD 2.0; {predict_path(options)} or the model is of version "
            "1.1."
        )


def _check_head(options, setup):
    """Refuses to evaluate or predict with an untrained head."""
    head = fine_tuning_run_setup.head_to_apply(options, setup.source)
    if head is not None and head.kind != setup.task.KIND:
        raise ValueError(
            f"{options.init_checkpoint} has no question answering head, so it was not "
            "fine-tuned for this task; train first (--do_train)."
        )
