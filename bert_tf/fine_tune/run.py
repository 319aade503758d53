"""A run that a Python call starts: its options, data, progress and messages."""

import contextlib
import difflib
import logging
import os
import re
import sys
import types
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras

from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints import formats
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import tasks
from bert_tf.serving import predictors

logger = logging.getLogger(__name__)

# Flags that say what a tool does and on which data. The call sets them.
_SET_BY_CALL = frozenset(
    (
        *("init_checkpoint", "output_dir", "do_train", "do_eval", "do_predict"),
        *("check", "dry_run", "data_dir", "train_file", "eval_file", "predict_file"),
        *("corpus_file", "validation_split", "task_name", "tfds_name", "tfds_splits"),
        *("train_language", "eval_language", "word_column", "tag_column", "header"),
        *("ensemble", "model", "top_k"),
    )
)
# The arguments that replace these flags in Python calls.
_ARGUMENTS = {
    "train_file": "train",
    "eval_file": "validation",
    "predict_file": "validation",
    "validation_split": "validation",
    "corpus_file": "corpus",
}
_FLAG = re.compile(r"(?<![\w-])--([a-z]\w*)")


class Run:
    """Options and data of one run.

    Args:
        function: name of the called function, for messages.
        options_class: record of the tool's options.
        output_dir: folder of the run.
        given: the keyword arguments of the call.
        progress: see `bert_tf.progress`.

    Attributes:
        values: the options, by name. The function adds those of its data.
        progress: see `bert_tf.progress`.

    Raises:
        TypeError: an argument is not an option of the tool.
        ValueError: Keras does not use TensorFlow.
    """

    def __init__(
        self,
        function: str,
        options_class: type[options_module.Options],
        *,
        output_dir: str,
        given: Mapping[str, Any],
        progress: progress_module.Progress,
    ):
        self._options_class = options_class
        self._defaults = {
            one.name: one.default for one in options_module.declarations(options_class)
        }
        _check_names(function, given, self._defaults.keys() - _SET_BY_CALL)
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                f"Keras uses {keras.backend.backend()}, but training needs TensorFlow; "
                "set the environment variable KERAS_BACKEND=tensorflow before Keras is "
                "imported."
            )
        _check_types(output_dir, progress)
        self.values = {
            **given,
            "output_dir": os.fspath(output_dir),
            "do_train": True,
        }
        self.progress = progress
        self._contents: dict[str, bytes] = {}
        self._training: list[str] = []

    def start_from(self, init_checkpoint: str | os.PathLike[str] | None) -> None:
        """Sets the checkpoint and, unless it is given, its casing.

        Raises:
            OSError, ValueError: it is not a checkpoint, or cannot be opened.
        """
        if not isinstance(init_checkpoint, str | os.PathLike | None):
            raise ValueError(
                f"init_checkpoint is {init_checkpoint!r:.60}; expected the path of a "
                "checkpoint, the name of a model, or None."
            )
        self.values["init_checkpoint"] = init_checkpoint
        if init_checkpoint is None or "do_lower_case" in self.values:
            return
        if self._defaults["do_lower_case"] is None:
            return  # The tool asks the checkpoint.
        source = formats.open_source(os.fspath(init_checkpoint), progress=self.progress)
        if source.do_lower_case is not None:
            self.values["do_lower_case"] = source.do_lower_case

    def option(self, name: str) -> Any:
        """Returns the value of an option, or its default."""
        return self.values.get(name, self._defaults[name])

    def add_file(self, name: str, content: bytes, *, trains: bool = False) -> str:
        """Adds a file to the data of the run and returns its path.

        The file is written when the run starts.

        Args:
            name: of the file.
            content: its bytes.
            trains: whether the run trains on it.
        """
        folder = os.path.join(self.values["output_dir"], given_data.FOLDER)
        path = os.path.join(folder, name)
        self._contents[path] = content
        if trains:
            self._training.append(path)
        return path

    def divided(
        self, rows: Sequence[Any], texts: Sequence[Sequence[str]], share: float
    ) -> tuple[list[Any], list[Any]]:
        """Returns the rows to train on and those to evaluate on; see `given_data`."""
        seed = self.option("random_seed")
        return given_data.divided(rows, texts, share=share, seed=seed)

    def predictor(self, work: Callable[..., str]) -> Any:
        """Trains and evaluates; returns the predictor of the run.

        Args:
            work: takes the options record and `progress`, and returns a report.

        Raises:
            OSError, ValueError: options, data or checkpoint are invalid.
        """
        options = self._options_class(**self.values)
        folder = self.values["output_dir"]
        given_data.write(folder, self._contents, self._training)
        logger.info("%s", work(options, progress=self.progress))
        return predictors.load(folder)


@contextlib.contextmanager
def started(
    function: str,
    options_class: type[options_module.Options],
    *,
    output_dir: str,
    given: Mapping[str, Any],
    progress: progress_module.Progress | None,
) -> Iterator[Run]:
    """Yields a `Run`, and shows its progress while the block runs.

    In the messages of errors, flags become arguments: `--train_file` is `train`.

    Args:
        function, options_class, output_dir, given: see `Run`.
        progress: None shows bars and log lines on standard error.
    """
    with contextlib.ExitStack() as stack:
        if progress is None:
            progress = stack.enter_context(progress_module.shown_with_log(sys.stderr))
        try:
            yield Run(
                function,
                options_class,
                output_dir=output_dir,
                given=given,
                progress=progress,
            )
        except (ValueError, OSError, ImportError) as error:
            if len(error.args) == 1 and isinstance(error.args[0], str):
                error.args = (_with_arguments(error.args[0]),)
            raise


def fine_tune(
    function: str,
    task: str,
    *,
    train: Any,
    validation: Any,
    init_checkpoint: str | os.PathLike[str] | None,
    output_dir: str,
    progress: progress_module.Progress | None,
    options: Mapping[str, Any],
    set_by_call: Mapping[str, Any] = types.MappingProxyType({}),
    more_data: Mapping[str, Any] = types.MappingProxyType({}),
) -> Any:
    """Trains and evaluates a task; returns its predictor. See `bert_tf.fine_tune`.

    Args:
        function: name of the called function, for messages.
        task: a key of `fine_tuning.tasks.TASKS`.
        train, validation, init_checkpoint, output_dir, progress: of the function.
        options: its further arguments.
        set_by_call: values of further flags that the function sets itself.
        more_data: further arguments of `Task.give_data`.
    """
    declaration = tasks.declaration(task)
    with started(
        function,
        tasks.options_class(task),
        output_dir=output_dir,
        given=options,
        progress=progress,
    ) as run:
        run.start_from(init_checkpoint)
        run.values |= set_by_call
        declaration.give_data(run, train, validation, **more_data)
        predictor = run.predictor(fine_tuning_run.run)
        return declaration.prepare_predictor(predictor, run)


def _check_names(function, given, known):
    for name in given:
        if name in _SET_BY_CALL:
            raise TypeError(
                f"{function}() has no argument {name!r}; it sets this flag itself."
            )
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}?" if near else "see its tool's flags."
            raise TypeError(f"{function}() has no argument {name!r}; {hint}")


def _check_types(output_dir, progress):
    if not isinstance(output_dir, str | os.PathLike):
        raise ValueError(
            f"output_dir is {output_dir!r:.60}; expected the path of a folder."
        )
    if not callable(progress):
        raise ValueError(
            f"progress is {progress!r:.60}; expected a callback, such as "
            "bert_tf.ProgressBar() or bert_tf.progress.silent, or None."
        )


def _with_arguments(message):
    """Returns a message about flags as one about arguments."""
    return _FLAG.sub(lambda found: _ARGUMENTS.get(found[1], found[1]), message)
