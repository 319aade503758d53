"""What a run works on: task, data, vocabulary and model size, checked together."""

import dataclasses
import os

from bert_tf import files
from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run_files
from bert_tf.modeling import config as config_module
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import task as task_module
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inputs:
    """Everything a run needs to know before it builds a model."""

    task: task_module.Task  # What task.json will say, or says already.
    config: config_module.BertConfig  # Size of the model.
    vocabulary: vocabulary_module.Vocabulary  # Pieces of the model.
    # None where nothing is trained, or nothing is answered.
    train_examples: list[question_answering_examples.SquadExample] | None
    squad_file: question_answering_examples.SquadFile | None


def prepare(
    options: question_answering_options.RunSquadOptions,
    *,
    progress=progress_module.silent,
) -> Inputs:
    """Returns what a run works on, all its files read.

    Training takes it from the options. Evaluating and predicting take it from
    `output_dir`, where training left it, or else from the options.

    Args:
        options: with one train_file, where something is trained.
        progress: told about a download.

    Raises:
        OSError: a file cannot be read.
        ValueError: options, files and `output_dir` do not fit together.
    """
    trains = options.do_train or options.dry_run
    is_run = files.exists(os.path.join(options.output_dir, "task.json"))
    if trains or not is_run:
        task, config, vocabulary = _from_options(options, progress)
    else:
        task, config, vocabulary = _from_run(options)
    if trains and is_run:
        _check_same_run(task, vocabulary, options.output_dir)
    if not trains:
        _check_trained(options)
    config.check_vocabulary_size(len(vocabulary))
    config.check_sequence_length(task.max_seq_length)
    train_examples = None
    if trains:
        train_examples = read_training_examples(options, options.train_file[-1])
    return Inputs(
        task=task,
        config=config,
        vocabulary=vocabulary,
        train_examples=train_examples,
        squad_file=_read_predict_file(options),
    )


def read_training_examples(
    options, path: str
) -> list[question_answering_examples.SquadExample]:
    """Returns the questions of a file to train on."""
    return question_answering_examples.training_examples(
        question_answering_examples.read_squad(path),
        version_2_with_negative=options.version_2_with_negative,
    )


def read_task(run_dir: str) -> task_module.Task:
    """Returns the task of a training run's folder.

    Raises:
        OSError: the folder or its task.json cannot be read.
        ValueError: it is no run of this kind.
    """
    values = run_folder.RunFolder(run_dir).read_task()
    return task_module.Task.from_dict(values, os.path.join(run_dir, "task.json"))


def _read_predict_file(options):
    """Returns what is to be answered, and is to be scored where that is asked for."""
    is_scored = options.do_eval or (options.do_train and options.eval_every_steps > 0)
    if not (is_scored or options.do_predict):
        return None
    squad_file = question_answering_examples.read_squad(options.predict_file)
    if is_scored and not squad_file.has_answers:
        raise ValueError(
            f"{options.predict_file} has questions without their answers, so nothing "
            "can be evaluated on it; give a file with answers, or leave --do_eval and "
            "--eval_every_steps out."
        )
    return squad_file


def _from_options(options, progress):
    start = starting_point.of_options(options, progress=progress)
    names = [field.name for field in dataclasses.fields(task_module.Task)]
    values = {name: getattr(options, name) for name in names}
    task = task_module.Task(**values | {"do_lower_case": start.do_lower_case})
    return task, start.config, start.vocabulary


def _from_run(options):
    """Takes all but how answers are chosen from the run."""
    run_dir = options.output_dir
    task = read_task(run_dir)
    for field in dataclasses.fields(task_module.Task):
        given, trained = getattr(options, field.name), getattr(task, field.name)
        is_default = given == type(options).__dataclass_fields__[field.name].default
        is_choice = field.name in task_module.FOR_PREDICTING
        if not (is_choice or is_default or given == trained):
            raise ValueError(
                f"--{field.name}={given}, but the model in {run_dir} was trained with "
                f"{trained}; leave --{field.name} out."
            )
    chosen = {name: getattr(options, name) for name in task_module.FOR_PREDICTING}
    task = dataclasses.replace(task, **chosen)
    return task, run_files.read_config(run_dir), run_files.read_vocabulary(run_dir)


def _check_same_run(task, vocabulary, output_dir):
    """Refuses to go on training one task's checkpoint with another task's data."""
    if rotation.latest(output_dir) is None:
        return
    found = read_task(output_dir).to_dict()
    wanted = {
        name: value
        for name, value in task.to_dict().items()
        if name not in task_module.FOR_PREDICTING
    }
    run_files.check_same_task(output_dir, found, wanted, vocabulary)


def _check_trained(options):
    """Refuses to evaluate or to predict with a head that was never trained."""
    head = run_files.head_to_apply(options)
    if head is None:
        return
    if head.kind != task_module.KIND:
        raise ValueError(
            f"{options.init_checkpoint} has no head for question answering, so it was "
            "not fine-tuned to answer; train first (--do_train)."
        )
