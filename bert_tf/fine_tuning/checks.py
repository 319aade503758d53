"""What the data checks of all tasks share: reading a file, judging casing."""

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
    """The function `check` in the module `checks` of every task."""

    def __call__(
        self,
        options: Any,
        start: starting_point.StartingPoint,
        findings: findings_module.Findings,
        *,
        progress: progress_module.Progress = progress_module.silent,
    ) -> estimates.Workload | None:
        """Reads the data that the options name and adds what it finds.

        Args:
            options: record of the task's own tool.
            start: its vocabulary and casing are used.
            findings: to add to.
            progress: reports how many texts are tokenized.

        Returns:
            The work that training would do; None without training data.
        """


def read_file(
    findings: findings_module.Findings,
    name: str,
    path: str,
    read: Callable[..., DataT],
) -> DataT | None:
    """Returns what a file holds, and adds every error and broken row in it.

    Args:
        findings: to add to.
        name: of what the file holds, such as "train".
        path: of the file, for the report.
        read: called with an empty list `broken_rows`; leaves broken rows out, appends
            what is wrong with each of them to the list, and returns the rest.

    Returns:
        What `read` returned; None if the file cannot be read.
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
    """Returns the run's tokenizer, and adds whether its casing suits the texts.

    Args:
        findings: to add to.
        start: vocabulary and casing of the run.
        texts: all texts of the data.
    """
    if not isinstance(start.vocabulary, vocabulary_module.Vocabulary):
        raise ValueError("The check of a task's data needs a vocabulary.")
    text_checks.check_casing(
        findings, texts, start.vocabulary, do_lower_case=start.do_lower_case
    )
    return in_graph.InGraphTokenizer(
        start.vocabulary, do_lower_case=start.do_lower_case
    )
