"""The shards of a corpus as tasks for the runners of Apache Beam."""

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
    """A shard, and all that another machine needs to know to do it."""

    task: one_shard.Task  # What to do.
    options: pretraining_data_options.CreatePretrainingDataOptions  # How.


def do_all(
    tasks: list[one_shard.Task],
    options: pretraining_data_options.CreatePretrainingDataOptions,
    *,
    stage: str,
    progress: progress_module.Progress,
) -> Iterator[journal_module.Result]:
    """Does all tasks on the runner that the options name, and yields their results.

    Args:
        tasks: a task for each shard; their folder is one that all workers see.
        options: what to make, and where.
        stage: name for the progress.
        progress: told when all is done.

    Raises:
        ImportError: apache-beam is not installed.
        OSError: a file cannot be read or written, or the runner failed.
        ValueError: as `shard_worker.parts_of`.
    """
    execution.run(
        do,
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
                f"--runner={options.runner}: shard {task.place.shard_index} is not in "
                f"{task.folder}; is that a folder that all workers share?"
            )
        yield result


def do(task: RunnerTask, on_bytes: Callable[[int], None]) -> None:
    """Samples a shard; one that is done stays as it is.

    Args:
        task: what to do.
        on_bytes: told the bytes of the shard when it is done.

    Raises:
        OSError, ValueError: as `shard_worker.parts_of`.
    """
    shard = task.task
    if journal_module.finished(shard.folder, shard.place.shard_index) is None:
        sampler = _sampler(task.options)
        one_shard.parts_of(shard, task.options, sampler, lambda done: None)
    on_bytes(shard.shard.num_bytes)


@functools.lru_cache(maxsize=1)
def _sampler(options):
    """Returns the sampler of a process: making one takes longer than a small shard."""
    vocabulary = vocabulary_module.Vocabulary.load(options.vocab_file)
    return one_shard.create_sampler(options, vocabulary)
