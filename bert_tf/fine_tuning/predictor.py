"""The base of all predictors: a trained model, loaded from its run or a checkpoint."""

import dataclasses
import functools
import logging
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
from typing import cast

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import loading
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import given_data
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import input_features
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder

logger = logging.getLogger(__name__)

# Default number of rows per call of the model. Limits the memory for long inputs.
ROWS_PER_CALL = 32
# A batch of rows of another length holds about as many pieces as one of this length.
ROW_LENGTH = 128
# Items are sorted by length within groups of this many batches.
BATCHES_SORTED = 16
# Of the pieces that are [UNK]; more means another language or script.
_UNKNOWN_SHARE = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadSettings:
    """How a predictor is loaded; see `bert_tf.load`."""

    # The opened checkpoint. None: the last checkpoint of the run.
    start: starting_point.StartingPoint | None = None
    has_task_file: bool = True  # False: `start` alone describes the task.
    dtype: Any = None  # A Keras dtype or policy. None: the global policy.
    batch_size: int = ROWS_PER_CALL  # Rows per call of the model.
    backend: str = backends.TENSORFLOW  # One of `backends.BACKENDS`.
    # Only for a checkpoint without a run.
    max_seq_length: int | None = None
    pooling: str | None = None

    @property
    def required_start(self) -> starting_point.StartingPoint:
        """The opened checkpoint, for predictors that require one."""
        if self.start is None:
            raise ValueError("LoadSettings.start is None; expected a checkpoint.")
        return self.start

    @property
    def source(self) -> source_module.Source:
        """The source of `start`."""
        return cast(source_module.Source, self.required_start.source)

    def task_values(self, longest: int | None = None) -> dict[str, Any]:
        """Returns the fields of `TaskRecord` for a checkpoint without a run.

        Args:
            longest: maximum length if neither the caller nor the checkpoint sets one.
                None: the number of the model's positions.

        Raises:
            ValueError: `max_seq_length` exceeds the model's positions.
        """
        start = self.required_start
        most = start.config.max_position_embeddings
        length = self.max_seq_length
        if length is None:
            length = self.source.text.max_seq_length or min(most, longest or most)
        start.config.check_sequence_length(length)
        return {"max_seq_length": length, **start.tokenizer_arguments()}


DEFAULT_SETTINGS = LoadSettings()


class Predictor:
    """A trained model with its tokenizer.

    `predict` accepts any iterable (see `given_data.read`), computes long inputs first
    in batches of similar length, and returns a list of answers in the order of the
    inputs. Each task defines `items`, `answers`, `outputs` and `record_of_checkpoint`.

    Args:
        run_dir: `output_dir` of the training run, or the path of a checkpoint.
        task: record of the task.
        settings: how to load the model.

    Attributes:
        run_dir: the folder of the run.
        task: record of the task.
        config: size of the encoder.
        vocabulary: the word pieces.
        tokenizer: an instance of `TOKENIZER`.
        model: the task's model with the weights of the run.
        checkpoint: path of the loaded checkpoint.
        batch_size: rows of `ROW_LENGTH` pieces per call of the model; see
            `row_batches`.

    Raises:
        OSError: a file of the folder cannot be read.
        ValueError: the folder contains no trained model of the task.
    """

    RECORD: ClassVar[type[task_record.TaskRecord]]
    UNIT: ClassVar[str] = "texts"  # What the items are, in the plural.
    TOKENIZER: ClassVar[type] = in_graph.InGraphTokenizer
    # Whether the answers depend on the pooler, which some checkpoints lack.
    uses_pooler = False
    _num_truncated = 0  # Inputs of a call of `predict`, which `answers` counts.
    _num_pieces = _num_unknown = 0  # Word pieces of a call, and those that are [UNK].

    def __init__(
        self,
        run_dir: str,
        task: task_record.TaskRecord,
        *,
        settings: LoadSettings = DEFAULT_SETTINGS,
    ):
        self.run_dir = run_dir
        self.task = task
        self.batch_size = settings.batch_size
        start = settings.start
        if start is None:
            self.config = task_record.read_config(run_dir)
            self.vocabulary = task_record.read_vocabulary(run_dir)
            source = loading.open_run(run_dir)
        else:
            self.config, source = start.config, settings.source
            self.vocabulary = cast(vocabulary_module.Vocabulary, start.vocabulary)
        companion_files.check_vocabulary_size(self.config, len(self.vocabulary))
        self.config.check_sequence_length(task.max_seq_length)
        loading.check_sizes(self.config, source)
        self.tokenizer = self.TOKENIZER(self.vocabulary, **task.tokenizer_arguments())
        self._settings = settings
        # OpenVINO is given a model in float32 and casts it itself.
        is_openvino = settings.backend == backends.OPENVINO
        self.model = task.create_model(
            self.config, dtype="float32" if is_openvino else settings.dtype
        )
        self.model.build()
        report = loading.load_source(self.model, source)
        may_lack_pooler = start is not None and not self.uses_pooler
        source.check_complete(report.missing, may_lack_pooler=may_lack_pooler)
        self.checkpoint = source.path
        # Otherwise the model's variables are read at every call.
        self._has_constant_weights = is_openvino or settings.dtype in backends.ROUNDED

    @classmethod
    def load(cls, run_dir: str, settings: LoadSettings = DEFAULT_SETTINGS) -> "Any":
        """Returns the predictor of a run folder or a checkpoint."""
        if settings.has_task_file:
            record = cls.RECORD.read(run_dir)
        else:
            record = cls.record_of_checkpoint(settings)
        return cls(run_dir, record, settings=settings)

    @classmethod
    def record_of_checkpoint(cls, settings: LoadSettings) -> task_record.TaskRecord:
        """Returns the record of a checkpoint without a run."""
        raise NotImplementedError

    def predict(self, inputs: Iterable[Any]) -> list[dict[str, Any]]:
        """Returns one answer per input. `bert_tf.load` describes both for every task.

        Args:
            inputs: any iterable.

        Raises:
            ValueError: an input does not have the form of the task's inputs.
        """
        return self._answered(self.items(inputs), self.answers)

    def items(self, inputs: Iterable[Any]) -> Sequence[Any]:
        """Returns the inputs as a checked list.

        Raises:
            ValueError: an input has another form.
        """
        raise NotImplementedError

    def answers(self, items: Sequence[Any]) -> Iterable[Any]:
        """Returns the answers to some items; see `_answered`."""
        raise NotImplementedError

    def outputs(self, features: Mapping[str, Any]) -> Any:
        """Returns what `answers` needs of the model: a tensor, or a dict of tensors.

        The default: the logits.
        """
        return self.model(features)["logits"]

    @functools.cached_property
    def apply(self) -> backends.Compiled:
        """`outputs` as one compiled function."""
        return self._compiled(self.outputs)

    @property
    def scores(self) -> dict[str, float]:
        """The scores in the run's eval_results.txt; empty if it was not evaluated."""
        return run_folder.RunFolder(self.run_dir).read_eval_results()

    def _compiled(
        self, function: Callable, columns: Sequence[str] = input_features.SEQUENCE
    ) -> backends.Compiled:
        """Returns `backends.compiled` with the backend of this predictor."""
        if self._has_constant_weights:
            function = backends.with_constant_weights(function, self.model)
        apply = backends.compiled(
            function,
            columns,
            backend=self._settings.backend,
            policy=self._settings.dtype,
        )

        return lambda features: apply(self._counted(features))

    def _counted(self, features: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns a batch, of which it counts the word pieces and [UNK]."""
        pieces = np.asarray(features["input_ids"])
        special = [self.vocabulary.cls_id, self.vocabulary.sep_id]
        is_real = np.asarray(features["input_mask"]) == 1
        pieces = pieces[is_real & ~np.isin(pieces, special)]
        self._num_pieces += len(pieces)
        self._num_unknown += int(np.sum(pieces == self.vocabulary.unk_id))
        return features

    def _answered(
        self,
        items: Sequence[Any],
        answers_of: Callable[[list[Any]], Iterable[Any]],
        *,
        length_of: Callable[[Any], int] = given_data.total_length,
        batches_sorted: int = BATCHES_SORTED,
    ) -> list[Any]:
        """Returns the answers to items, in their order.

        Items of similar length are computed together. The longest ones come first, so
        that a batch that does not fit into memory fails at once.

        Args:
            items: checked items.
            answers_of: from at most `batch_size * batches_sorted` items to their
                answers. It divides them into batches.
            length_of: approximate length of an item.
            batches_sorted: see `answers_of`.
        """
        self._num_truncated = 0
        lengths = [length_of(item) for item in items]
        order = sorted(range(len(items)), key=lambda index: -lengths[index])
        answers: list[Any] = [None] * len(items)
        if items:
            progress_module.report("predict", 0, len(items), unit=self.UNIT)
        size = batches_sorted * self.batch_size
        for start in range(0, len(items), size):
            part = order[start : start + size]
            answers_of_part = answers_of([items[index] for index in part])
            for index, answer in zip(part, answers_of_part, strict=True):
                answers[index] = answer
            progress_module.report(
                "predict", start + len(part), len(items), unit=self.UNIT
            )
        if self._num_truncated:
            logger.warning(
                "%d of %d inputs are longer than max_seq_length=%d and are truncated.",
                self._num_truncated,
                len(items),
                self.task.max_seq_length,
            )
        self._warn_of_unknown()
        return answers

    def _warn_of_unknown(self) -> None:
        """Logs a warning if many of the `_counted` pieces are [UNK]; counts anew."""
        share = self._num_unknown / max(self._num_pieces, 1)
        if share > _UNKNOWN_SHARE:
            logger.warning(
                "%.0f %% of the word pieces of the %s are [UNK]; the vocabulary of %s "
                "does not suit them.",
                100 * share,
                self.UNIT,
                self.run_dir,
            )
        self._num_pieces = self._num_unknown = 0

    def _applied(
        self, function: Callable, features: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Returns outputs [N, ...], computed in batches of similar length.

        `function` maps features of B rows to a tensor [B, ...]. Features are columns
        int32 [N, S], N at least 1.
        """
        lengths = np.sum(features["input_mask"], axis=1)
        batches = row_batches(lengths, self.batch_size)
        outputs = []
        for numbers in batches:
            part = {name: column[numbers] for name, column in features.items()}
            outputs.append(np.asarray(function(without_padding(part))))
        by_length = np.concatenate(outputs)
        in_order = np.empty_like(by_length)
        in_order[np.concatenate(batches)] = by_length
        return in_order


def checked_count(value: int, name: str, *, minimum: int = 1) -> int:
    """Returns an argument that is a number of things, such as `batch_size`.

    Raises:
        ValueError: it is not an integer, or less than `minimum`.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} is {value!r:.60}; expected an integer.")
    if value < minimum:
        raise ValueError(f"{name} is {value}; expected at least {minimum}.")
    return int(value)


def without_padding(features: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns features without the trailing positions that are padding in all rows."""
    longest = int(np.max(np.sum(features["input_mask"], axis=1)))
    return {name: column[:, :longest] for name, column in features.items()}


def row_batches(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Returns the indices of the rows of each batch, the longest rows first.

    Batches of many short rows or of few long ones need about the same time and memory.

    Args:
        lengths: number of pieces in each row.
        batch_size: rows per batch, for rows of `ROW_LENGTH` pieces.

    Example:
        >>> row_batches([64, 256, 64, 128, 64], batch_size=2)
        [[1], [3, 0], [2, 4]]
    """
    most = batch_size * ROW_LENGTH
    batches: list[list[int]] = []
    room = 0  # Rows that the last batch still has room for.
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if room == 0:
            batches.append([])
            room = max(1, most // max(1, int(lengths[number])))
        batches[-1].append(number)
        room -= 1
    return batches
