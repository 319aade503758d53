"""The shards of a corpus as tasks for the runners of Apache Beam."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterator

from bert_tf import progress as progress_protocol
from bert_tf.data import execution
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import shard_journal
from bert_tf.pretraining import shard_worker
from bert_tf.tokenization import vocabulary as vocabularies


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunnerTask:
    """A shard, and all that another machine needs to know to do it."""

    task: shard_worker.Task  # What to do.
    options: pretraining_options.CreatePretrainingDataOptions  # How.


def do_all(
    tasks: list[shard_worker.Task],
    options: pretraining_options.CreatePretrainingDataOptions,
    *,
    stage: str,
    progress: progress_protocol.Progress,
) -> Iterator[shard_journal.Result]:
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
        result = shard_journal.finished(task.folder, task.place.shard_index)
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
    if shard_journal.finished(shard.folder, shard.place.shard_index) is None:
        sampler = _sampler(task.options)
        shard_worker.parts_of(shard, task.options, sampler, lambda done: None)
    on_bytes(shard.shard.num_bytes)


@functools.lru_cache(maxsize=1)
def _sampler(options):
    """Returns the sampler of a process: making one takes longer than a small shard."""
    vocabulary = vocabularies.Vocabulary.load(options.vocab_file)
    return shard_worker.create_sampler(options, vocabulary)
