"""The setup of a fine-tuning run, checked before its model is built."""

import dataclasses
import logging
import os
import typing
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints import vocabulary_checks
from bert_tf.checkpoints.release import rotation
from bert_tf.data import label_names
from bert_tf.fine_tuning import model_card
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import result_files
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)

RecordT = typing.TypeVar("RecordT", bound=task_record.TaskRecord)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSetup:
    """What a run needs to build its model. Each task adds its data."""

    task: task_record.TaskRecord  # The contents of task.json.
    start: starting_point.StartingPoint  # Returned by `find_start`.
    # The data that the options name, by set: "train", "dev", "test". They include sets
    # that this run does not read.
    data_sets: Mapping[str, result_files.DataSet]
    predictions_file: str = "predictions.jsonl"  # The main file of predictions.
    # Whether "dev" is a part of the training file that is not trained on.
    is_held_out: bool = False

    def data_file(self, part: str, path: str, num_examples: int) -> model_card.DataFile:
        """Returns the record of a file of the run; see `model_card.data_file`."""
        sets = (one for one in self.data_sets.values() if path in one.paths)
        return model_card.data_file(part, path, num_examples, next(sets, None))

    def own_results(self) -> dict[str, result_files.DataSet]:
        """Returns the data sets whose result files get no suffix, by main file."""
        main_files = {
            "dev": run_folder.EVAL_RESULTS_FILE,
            "test": self.predictions_file,
        }
        return {
            main_files[name]: data_set
            for name, data_set in self.data_sets.items()
            if name in main_files
        }

    @property
    def config(self) -> config_module.BertConfig:
        """The model size."""
        return self.start.config

    @property
    def vocabulary(self) -> vocabulary_module.Vocabulary:
        """The model's word pieces."""
        # Only starting points of pretraining may lack one.
        return typing.cast(vocabulary_module.Vocabulary, self.start.vocabulary)

    @property
    def source(self) -> source_module.Source | None:
        """The opened init_checkpoint.

        None if the run starts from its own checkpoint or from random weights.
        """
        return self.start.source


def read_config(run_dir: str) -> config_module.BertConfig:
    """Returns the model size recorded in a training run's folder."""
    path = os.path.join(run_dir, companion_files.CONFIG_FILE)
    return config_module.BertConfig.from_json_file(path)


def read_vocabulary(run_dir: str) -> vocabulary_module.Vocabulary:
    """Returns the vocabulary stored in a training run's folder.

    Raises:
        OSError: there is none.
        ValueError: it is damaged, or not the one that the run was trained with.
    """
    vocabulary = companion_files.read_vocabulary(run_dir)
    if vocabulary is None:
        path = os.path.join(run_dir, companion_files.VOCAB_FILE)
        raise FileNotFoundError(f"No such file: {path}.")
    return vocabulary


def trained_task(
    options: fine_tuning_options.TaskOptions, record: type[RecordT]
) -> RecordT | None:
    """Returns the record of the finished run that the options evaluate or apply.

    None if the options describe the task, because the run trains, or because
    `output_dir` contains no run.

    Args:
        options: the tool's options.
        record: class of the task's record.

    Raises:
        OSError, ValueError: see `TaskRecord.read`.
    """
    if options.trains or not _is_run(options.output_dir):
        return None
    return record.read(options.output_dir)


def check_given_values(
    options: fine_tuning_options.TaskOptions,
    trained: task_record.TaskRecord,
    names: Iterable[str],
) -> None:
    """Refuses flags that contradict the finished run that is evaluated or applied.

    A run is always applied with its own values. Without this check, another value of a
    flag would have no effect, and the results would be read as those of that value.

    Args:
        options: the tool's options. An option with its default counts as not given,
            unless the default is `implicit`.
        trained: returned by `trained_task`.
        names: options that are also fields of the record.

    Raises:
        ValueError: the run has another value.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    for name in names:
        given, found = getattr(options, name), getattr(trained, name)
        if isinstance(defaults[name], options_module.Implicit):
            is_given = options_module.is_given(given)
        else:
            is_given = given != defaults[name]
        if is_given and given != found:
            raise ValueError(
                f"--{name}={given}, but the model in {options.output_dir} was "
                f"trained with {found}; omit --{name}."
            )


def find_start(
    options: fine_tuning_options.TaskOptions,
    trained: task_record.TaskRecord | None,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> starting_point.StartingPoint:
    """Returns model size, vocabulary and casing, and opens `init_checkpoint` if needed.

    A fine-tuning run opens `init_checkpoint` only here. Later steps (checking its head,
    loading its weights) use the opened source.

    Args:
        options: the tool's options.
        trained: returned by `trained_task`.
        progress: reports a download.

    Raises:
        OSError, ValueError, ImportError: see `starting_point.find_from_options`.
    """
    if trained is None:
        return starting_point.find_from_options(options, progress=progress)
    vocabulary = read_vocabulary(options.output_dir)
    _check_given_files(options)
    source = None
    if options.init_checkpoint and rotation.latest(options.output_dir) is None:
        source = formats.open_source(options.init_checkpoint, progress=progress)
        path = os.path.join(options.output_dir, companion_files.VOCAB_FILE)
        vocabulary_checks.check_given(vocabulary, path, source)
    return starting_point.StartingPoint(
        config=read_config(options.output_dir),
        vocabulary=vocabulary,
        do_lower_case=trained.do_lower_case,
        source=source,
    )


def head_to_apply(
    options: fine_tuning_options.TaskOptions, source: source_module.Source | None
) -> checkpoint_heads.Head | None:
    """Returns the head of an `init_checkpoint` that is applied without training.

    None if the run trains, or if `output_dir` contains a checkpoint. Each task refuses
    a head of a different kind, because its answers would come from random weights.

    Args:
        options: the tool's options.
        source: the opened `init_checkpoint`, or None.

    Raises:
        ValueError: there is no checkpoint to apply.
    """
    if options.trains or rotation.latest(options.output_dir) is not None:
        return None
    if source is None:
        raise ValueError(
            f"{options.output_dir} contains no checkpoint; train first (--do_train), "
            "or pass a fine-tuned checkpoint as --init_checkpoint."
        )
    return source.head


def check_label_order(
    path: str, head: checkpoint_heads.Head, labels: Sequence[str], *, advice: str
) -> None:
    """Refuses labels in another order than those of the applied head.

    A head has its own order of labels, which its weights do not show. In another order,
    every answer would get the name of another label. Names that only one side has are
    logged, because they may be two names of one label.

    Args:
        path: the checkpoint, for messages.
        head: returned by `head_to_apply`.
        labels: those of the task, in the order of the model's outputs.
        advice: how to pass the labels; they follow it in the message.

    Raises:
        ValueError: a label is in another place.
    """
    if head.labels is None or len(head.labels) != len(labels):
        return  # Unknown, or an error when the weights are loaded.
    if _has_other_order(head.labels, labels):
        raise ValueError(
            f"{path} was trained with the labels {', '.join(head.labels)}, but this "
            f"run has them in another order: {', '.join(labels)}; {advice}"
            f"{','.join(_in_order_of(head.labels, labels))}."
        )
    if list(map(label_names.key, head.labels)) != list(map(label_names.key, labels)):
        logger.warning(
            "%s was trained with the labels %s; this run calls them %s, in this order.",
            path,
            ", ".join(head.labels),
            ", ".join(labels),
        )


def check(
    setup: RunSetup,
    options: fine_tuning_options.TaskOptions,
    *,
    longest_sequence: int,
    may_change: Collection[str] = (),
) -> None:
    """Checks that model size, vocabulary and any run in `output_dir` match the task.

    Args:
        setup: of the run that is about to start.
        options: the tool's options.
        longest_sequence: in word pieces.
        may_change: fields of the record that may differ when training is resumed.

    Raises:
        OSError, ValueError: they do not match.
    """
    if options.trains:
        _warn_of_label_order(setup, options)
        if _is_run(options.output_dir):
            _check_same_run(setup, options.output_dir, may_change)
        else:
            setup.config.check_segments(setup.task.num_segments)
    setup.config.check_vocabulary_size(len(setup.vocabulary))
    setup.config.check_sequence_length(longest_sequence)


def _has_other_order(own, labels):
    """Returns whether a label that both sides have is in another place."""
    given = list(map(label_names.key, labels))
    keys = enumerate(map(label_names.key, own))
    return any(key in given and given[index] != key for index, key in keys)


def _in_order_of(own, labels):
    """Returns the labels of a checkpoint, spelled like those of the run."""
    return [label_names.same_name(name, labels) or name for name in own]


def _warn_of_label_order(setup, options):
    """Logs that a training starts from a head with its labels in another order."""
    source, labels = setup.source, getattr(setup.task, "labels", None)
    if source is None or not labels or rotation.latest(options.output_dir) is not None:
        return
    head = source.head
    if head.kind != setup.task.KIND or len(head.labels or ()) != len(labels):
        return
    if _has_other_order(head.labels, labels):
        logger.warning(
            "The head of %s has the labels %s, in another order than this run, so the "
            "training has to learn them anew. For your own data, --labels=%s keeps "
            "their order.",
            options.init_checkpoint,
            ", ".join(head.labels),
            ",".join(_in_order_of(head.labels, labels)),
        )


def _is_run(output_dir):
    return files.exists(os.path.join(output_dir, companion_files.TASK_FILE))


def _check_given_files(options):
    """Refuses given files that differ from those of the run that is used."""
    folder = run_folder.RunFolder(options.output_dir)
    if options.vocab_file is not None:
        given = vocabulary_module.Vocabulary.load(options.vocab_file)
        folder.check_same_vocabulary(given.fingerprint)
    if options.bert_config_file is not None:
        folder.check_same_model(
            config_module.BertConfig.from_json_file(options.bert_config_file)
        )


def _check_same_run(setup, run_dir, may_change):
    """Checks that a run to be resumed has the same task and vocabulary."""
    if rotation.latest(run_dir) is None:
        return
    recorded = type(setup.task).read(run_dir).to_dict()
    wanted = setup.task.to_dict()
    for name in {**recorded, **wanted}:
        found, value = recorded.get(name), wanted.get(name)
        if name not in may_change and found != value:
            raise ValueError(
                f"{run_dir} contains a run with {name} {found!r:.200}, but this "
                f"one has {value!r:.200}; choose another --output_dir."
            )
    run_folder.RunFolder(run_dir).check_same_vocabulary(setup.vocabulary.fingerprint)
