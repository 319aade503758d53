"""The record of a run in `task.json`: how to apply its model to new inputs."""

import dataclasses
import logging
import os
import types
import typing
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
from typing import Self

from bert_tf import files
from bert_tf import json_values
from bert_tf import options as options_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.release import bundle
from bert_tf.data import label_names
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)

RecordT = typing.TypeVar("RecordT", bound="TaskRecord")
# The two defaults of a field that has none.
_REQUIRED = (dataclasses.MISSING, dataclasses.MISSING)
_SHORTEST = 3  # [CLS], a word piece, [SEP].
_LARGEST = 2**31 - 1  # Of int32, in which graphs count positions.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskRecord:
    """The fields common to all tasks. Each task sets `KIND` and adds its own fields.

    Fields without a default are required in the file. Tuples become JSON lists.
    """

    KIND: ClassVar[str]  # The value of "task" in the file.

    max_seq_length: int  # Of the training, in word pieces.
    do_lower_case: bool
    # Set only if the tokenizer differs from the release's; see `TextEncoding`.
    # Otherwise they are not in the file.
    strip_accents: bool | None = None
    never_split: tuple[str, ...] = ()

    @classmethod
    def read(cls, run_dir: str) -> Self:
        """Returns the record of a training run's folder; unknown keys are ignored.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is missing, describes a different task, lacks a
                required key, or has a value of a wrong type.
        """
        values = run_folder.RunFolder(run_dir).read_task()
        source = os.path.join(run_dir, companion_files.TASK_FILE)
        if values.get("task") != cls.KIND:
            raise ValueError(
                f"{source} describes the task {values.get('task')!r}; expected "
                f"{cls.KIND!r}. Use the tool of that task, or another folder."
            )
        hints = typing.get_type_hints(cls)
        known: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            name, hint = field.name, hints[field.name]
            if name not in values:
                if (field.default, field.default_factory) == _REQUIRED:
                    raise ValueError(f"{source} lacks {name}; train again.")
                continue
            value, expected = values[name], None
            least = _SHORTEST if name == "max_seq_length" else 0
            if json_values.unexpected(value, _shape_of(hint)):
                expected = hint.__name__ if isinstance(hint, type) else hint
            elif isinstance(value, int) and not least <= value <= _LARGEST:
                expected = f"{least} to {_LARGEST}"
            if expected is not None:
                raise ValueError(
                    f"{source}: {name} is {value!r:.60}, expected {expected}; restore "
                    "the file, or train again."
                )
            known[name] = tuple(value) if isinstance(value, list) else value
        return cls(**known)

    def to_dict(self) -> dict[str, Any]:
        """Returns the contents of `task.json`."""
        values = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }
        for name in ("strip_accents", "never_split"):
            if values[name] in (None, []):
                del values[name]
        return {"task": self.KIND} | values

    def check_resumes(self, run_dir: str, may_change: Collection[str]) -> None:
        """Checks that training in the folder of a run can be resumed as this task.

        Raises:
            ValueError: a field differs that is not in `may_change`.
        """
        recorded, wanted = type(self).read(run_dir).to_dict(), self.to_dict()
        for name in {**recorded, **wanted}:
            before, now = recorded.get(name), wanted.get(name)
            if name not in may_change and before != now:
                raise ValueError(
                    f"{run_dir} contains a run with {name} {before!r:.200}, but this "
                    f"one has {now!r:.200}; choose another --output_dir."
                )

    @property
    def num_segments(self) -> int:
        """Number of segments in a sequence: 2 if it contains a pair of texts."""
        return 1

    def tokenizer_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments of a tokenizer, besides the vocabulary."""
        return {
            "do_lower_case": self.do_lower_case,
            "strip_accents": self.strip_accents,
            "never_split": self.never_split,
        }

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> heads.TaskModel:
        """Returns the task's model with new weights, not yet built.

        `dtype` is a Keras dtype or policy. None: the global policy.
        """
        raise NotImplementedError


def _shape_of(hint: Any) -> Any:
    """Returns the type of a field as a shape; see `json_values.unexpected`."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is types.UnionType:
        return tuple(map(_shape_of, parts))
    if kind is tuple:
        return [_shape_of(parts[0])]
    if kind is Mapping:
        return {str: _shape_of(parts[1])}
    return int | float if hint is float else hint


def is_run(folder: str) -> bool:
    """Returns whether a folder contains a run."""
    return files.exists(os.path.join(folder, companion_files.TASK_FILE))


def beside(source: source_module.Source, record: type[RecordT]) -> RecordT | None:
    """Returns the record of the run that a checkpoint belongs to, or None.

    A record of another task is left to the check of the checkpoint's head.
    """
    for folder in (source.path, os.path.dirname(source.path)):
        if folder and companion_files.read_task(folder).get("task") == record.KIND:
            return record.read(folder)
    return None


def trained(
    options: Any, record: type[RecordT], fixed: Collection[str]
) -> RecordT | None:
    """Returns the record of the finished run that the options evaluate or apply.

    A run is always applied with its own values. If another value of a flag had no
    effect, the results would be read as those of that value. The same holds for the
    names and the order of labels.

    Args:
        options: the tool's options. A flag with its default counts as not given, unless
            the default is `implicit`.
        record: class of the task's record.
        fixed: options that are also fields of the record.

    Returns:
        None if the options describe the task, because the run trains, or because
        `output_dir` contains no run.

    Raises:
        OSError, ValueError: see `TaskRecord.read`; or a flag has another value.
    """
    if options.trains or not is_run(options.output_dir):
        return None
    task = record.read(options.output_dir)
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    for name in fixed:
        value, recorded = getattr(options, name), getattr(task, name)
        is_given = options_module.is_given(value)
        if options_module.is_given(defaults[name]):  # It is not `implicit`.
            is_given = value != defaults[name]
        if is_given and value != recorded:
            if isinstance(value, tuple):
                value, recorded = ",".join(value), ",".join(recorded)
            raise ValueError(
                f"--{name}={value}, but the model in {options.output_dir} was trained "
                f"with {recorded}; omit --{name}."
            )
    return task


def columns_of(columns_class: Any, options: Any, known: Any) -> Any:
    """Returns the names of the columns of a task's tables.

    Args:
        columns_class: a dataclass. Its fields have the names of flags.
        options: of the tool; they take precedence. An empty name counts as none.
        known: the columns or the record that the other names are taken from. None, or
            without a field: the field has its default.
    """
    values = {}
    for field in dataclasses.fields(columns_class):
        default = getattr(known, field.name, field.default)
        values[field.name] = getattr(options, field.name, None) or default
    return columns_class(**values)


def find_start(
    options: Any, trained: TaskRecord | None
) -> starting_point.StartingPoint:
    """Returns model size, vocabulary and casing, and opens `init_checkpoint` if needed.

    Later steps (checking its head, loading its weights) use the opened source.

    Args:
        options: the tool's options.
        trained: the record of a finished run, or None.

    Raises:
        OSError, ValueError, ImportError: see `starting_point.find_from_options`.
        ValueError: a file that an option names differs from that of the finished run.
    """
    if trained is None:
        return starting_point.find_from_options(options)
    run_dir = options.output_dir
    folder, vocabulary = run_folder.RunFolder(run_dir), read_vocabulary(run_dir)
    if options.vocab_file is not None:
        given = vocabulary_module.Vocabulary.load(options.vocab_file)
        folder.check_same_vocabulary(given.fingerprint)
    if options.bert_config_file is not None:
        path = options.bert_config_file
        folder.check_same_model(config_module.BertConfig.from_json_file(path))
    source = None
    if options.init_checkpoint and bundle.latest(run_dir) is None:
        source = formats.open_source(options.init_checkpoint)
        path = os.path.join(run_dir, companion_files.VOCAB_FILE)
        starting_point.check_vocabulary(vocabulary, path, source)
    return starting_point.StartingPoint(
        config=read_config(run_dir),
        vocabulary=vocabulary,
        do_lower_case=trained.do_lower_case,
        source=source,
    )


def head_to_apply(
    options: Any, source: source_module.Source | None
) -> checkpoint_heads.Head | None:
    """Returns the head of an `init_checkpoint` that is applied without training.

    None if the run trains, or if `output_dir` contains a checkpoint. `source` is the
    opened `init_checkpoint`.

    Raises:
        ValueError: there is no checkpoint to apply.
    """
    if options.trains or bundle.latest(options.output_dir) is not None:
        return None
    if source is None:
        raise ValueError(
            f"{options.output_dir} contains no checkpoint; train first (--do_train), "
            "or pass a fine-tuned checkpoint as --init_checkpoint."
        )
    return source.head


def read_config(run_dir: str) -> config_module.BertConfig:
    """Returns the model size recorded in a run's folder."""
    path = os.path.join(run_dir, companion_files.CONFIG_FILE)
    if not files.exists(path):
        raise FileNotFoundError(
            f"No such file: {path}; copy the run's configuration there again."
        )
    return config_module.BertConfig.from_json_file(path)


def read_vocabulary(run_dir: str) -> vocabulary_module.Vocabulary:
    """Returns the vocabulary in a run's folder.

    Raises:
        OSError: there is none.
        ValueError: it is damaged, or not the one that the run was trained with.
    """
    vocabulary = companion_files.read_vocabulary(run_dir)
    if vocabulary is None:
        path = os.path.join(run_dir, companion_files.VOCAB_FILE)
        raise FileNotFoundError(
            f"No such file: {path}; copy the run's vocabulary there again."
        )
    return vocabulary


def check_segments(config: config_module.BertConfig, num_segments: int) -> None:
    """Raises a ValueError if texts have more segments than the model.

    Pieces of a segment beyond the table would get no segment embedding.
    """
    if num_segments > config.type_vocab_size:
        raise ValueError(
            "Pairs of texts have two segments, but the model has only one "
            "(type_vocab_size 1); use a model with type_vocab_size 2."
        )


def check_label_order(
    record: TaskRecord, options: Any, head: checkpoint_heads.Head
) -> None:
    """Refuses labels in another order than those of the head of `init_checkpoint`.

    A head has its own order of labels, which its weights do not show. In another order,
    every answer would get the name of another label. A training only has to learn them
    anew, which is logged. So are names that only one side has, because they may be two
    names of one label.

    Args:
        record: of the task. Its labels are in the order of the model's outputs.
        options: of the run.
        head: of the checkpoint.

    Raises:
        ValueError: a label is in another place, and the run does not train.
    """
    labels: Sequence[str] = getattr(record, "labels", ())
    if options.trains and head.kind != record.KIND:
        return  # The model gets a new head.
    if len(head.labels or ()) != len(labels):
        return  # Unknown, or an error when the weights are loaded.
    keys = list(map(label_names.key, labels))
    head_keys = list(map(label_names.key, head.labels or ()))
    path, names = options.init_checkpoint, ", ".join(labels)
    trained = f"{path} was trained with the labels {', '.join(head.labels or ())}"
    if any(a in keys and a != b for a, b in zip(head_keys, keys, strict=True)):
        spelled = [label_names.same_name(x, labels) or x for x in head.labels or ()]
        problem = (
            f"{trained}, but this run has them in another order: {names}; pass "
            f"--labels={','.join(spelled)} (with tables of your own, not with "
            "--task_name)."
        )
        if not options.trains:
            raise ValueError(problem)
        logger.warning("%s Otherwise the training learns them anew.", problem)
    elif keys != head_keys:
        logger.warning("%s; this run calls them %s, in this order.", trained, names)
