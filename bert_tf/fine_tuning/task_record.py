"""The record of a run in `task.json`: how to apply its model to new inputs."""

import dataclasses
import os
import types
import typing
from collections.abc import Mapping
from typing import Any
from typing import ClassVar
from typing import Self

from bert_tf.checkpoints import companion_files
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.training import run_folder


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
        """Returns the record of a training run's folder.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is missing, or describes a different task.
        """
        values = run_folder.RunFolder(run_dir).read_task()
        return cls.from_dict(values, os.path.join(run_dir, companion_files.TASK_FILE))

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str) -> Self:
        """Returns the record with the values of a `task.json`.

        Args:
            values: the file's JSON object. Unknown keys are ignored.
            source: name of the file, for error messages.

        Raises:
            ValueError: the file describes a different task, lacks a required key, or
                has a value of a wrong type.
        """
        if values.get("task") != cls.KIND:
            raise ValueError(
                f"{source} describes the task {values.get('task')!r}; expected "
                f"{cls.KIND!r}."
            )
        fields = dataclasses.fields(cls)
        missing = [
            field.name
            for field in fields
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
            and field.name not in values
        ]
        if missing:
            raise ValueError(f"{source} lacks {', '.join(missing)}; train again.")
        names = {field.name for field in fields}
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
            if name in names
        }
        hints = typing.get_type_hints(cls)
        for name, value in known.items():
            if not _has_type(value, hints[name]):
                raise ValueError(
                    f"{source}: {name} is {value!r:.60}, expected "
                    f"{getattr(hints[name], '__name__', hints[name])}; restore the "
                    "file, or train again."
                )
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

        Args:
            config: size of the encoder.
            dtype: a Keras dtype or policy. None: the global policy.
        """
        raise NotImplementedError


def _has_type(value: Any, hint: Any) -> bool:
    """Returns whether a value read from JSON has the type of a field."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        return any(_has_type(value, part) for part in parts)
    if kind is tuple:
        return isinstance(value, tuple) and all(_has_type(v, parts[0]) for v in value)
    if kind is Mapping:
        return isinstance(value, dict) and all(
            _has_type(item, parts[1]) for item in value.values()
        )
    if isinstance(value, bool):  # In Python, unlike JSON, a bool is an int.
        return hint is bool
    return isinstance(value, int | float if hint is float else hint)
