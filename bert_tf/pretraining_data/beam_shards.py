"""Samples the shards of a corpus on an Apache Beam runner."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf import progress as progress_module
from bert_tf.data.parallel import execution
from bert_tf.pretraining_data import journal as journal_module
from bert_tf.pretraining_data import one_shard
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerTask:
    """Everything that another machine needs to sample one shard."""

    task: one_shard.Task
    options: pretraining_data_options.CreatePretrainingDataOptions


def sample_all(
    tasks: list[one_shard.Task],
    options: pretraining_data_options.CreatePretrainingDataOptions,
    *,
    stage: str,
    progress: progress_module.Progress,
) -> Iterator[journal_module.Result]:
    """Runs all tasks on the runner of the options, then yields their results in order.

    Args:
        tasks: one task per shard. All workers must see the tasks' folder.
        options: what to create, and the runner.
        stage: name of the progress bar.
        progress: called at the start and at the end.

    Raises:
        ImportError: apache-beam is not installed.
        OSError: a file cannot be read or written, or the runner failed.
        ValueError: as `one_shard.sample`.
    """
    execution.run(
        sample,
        [RunnerTask(task=task, options=options) for task in tasks],
        options,
        stage=stage,
        num_bytes=sum(task.shard.num_bytes for task in tasks),
        progress=progress,
    )
    for task in tasks:
        result = journal_module.finished(task.folder, task.place.shard_index)
        if result is None:
            raise OSError(
                f"--runner={options.runner}: shard {task.place.shard_index} is missing "
                f"from {task.folder}. Check that all workers share this folder."
            )
        yield result


def sample(task: RunnerTask, on_bytes: Callable[[int], None]) -> None:
    """Samples a shard, unless an earlier run has finished it.

    Args:
        task: the shard, and how to sample it.
        on_bytes: called with the size of the shard when it is finished.

    Raises:
        OSError, ValueError: as `one_shard.sample`.
    """
    shard = task.task
    if journal_module.finished(shard.folder, shard.place.shard_index) is None:
        sampler = _sampler(task.options)
        one_shard.sample(shard, task.options, sampler, lambda done: None)
    on_bytes(shard.shard.num_bytes)


@functools.lru_cache(maxsize=1)
def _sampler(options):
    """Returns this process's sampler: creating one takes longer than a small shard."""
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    return one_shard.create_sampler(options, vocabulary)
