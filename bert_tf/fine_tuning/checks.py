"""Shared parts of the data checks of all tasks: reading files, checking casing."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import TypeVar

from bert_tf import progress as progress_module
from bert_tf.checkpoints import starting_point
from bert_tf.data import findings as findings_module
from bert_tf.data import text_checks
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import estimates

DataT = TypeVar("DataT")


class Check(Protocol):
    """The function `check` in the module `checks` of each task."""

    def __call__(
        self,
        options: Any,
        start: starting_point.StartingPoint,
        findings: findings_module.Findings,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> estimates.Workload | None:
        """Reads the data that the options name, and adds its findings.

        Args:
            options: of the task's tool.
            start: provides vocabulary and casing.
            findings: the list to extend.
            progress: reports the number of tokenized texts.

        Returns:
            The size of the training work. None without training data.
        """


def read_file(
    findings: findings_module.Findings,
    name: str,
    path: str,
    read: Callable[..., DataT],
) -> DataT | None:
    """Reads a file, and reports its errors and broken rows.

    Args:
        findings: the list to extend.
        name: of the set, such as "train".
        path: of the file, for the report.
        read: called with an empty list `broken_rows`. It skips broken rows, appends
            their errors to the list, and returns the rest.

    Returns:
        The result of `read`. None if the file cannot be read.
    """
    broken: list[str] = []
    found = None
    try:
        found = read(broken_rows=broken)
    except (OSError, ValueError) as error:
        findings.failure(f"reading {name}", error)
    else:
        findings.passed("files", f"{name}: {path}")
    findings.broken_rows(f"reading {name}", broken)
    return found


def checked_tokenizer(
    findings: findings_module.Findings,
    start: starting_point.StartingPoint,
    texts: Sequence[str],
) -> in_graph.InGraphTokenizer:
    """Returns the tokenizer of the run, and reports whether its casing suits the texts.

    Args:
        findings: the list to extend.
        start: provides vocabulary and casing.
        texts: all texts of the data.

    Raises:
        ValueError: `start` has no vocabulary.
    """
    if not isinstance(start.vocabulary, vocabulary_module.Vocabulary):
        raise ValueError("Checking the data of a task requires a vocabulary.")
    arguments = start.tokenizer_arguments()
    text_checks.check_casing(
        findings,
        texts,
        start.vocabulary,
        do_lower_case=start.do_lower_case,
        never_split=arguments["never_split"],
    )
    return in_graph.InGraphTokenizer(start.vocabulary, **arguments)
