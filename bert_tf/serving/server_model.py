"""The part of the server that computes: a loaded model and batches of requests.

Requests of one batch that call the same signature with rows of equal shape are computed
together.
"""

from typing import Any

import numpy as np

from bert_tf.serving import client
from bert_tf.serving import saved_signatures


class LoadedModel:
    """A SavedModel in memory.

    Args:
        export_dir: the SavedModel.

    Raises:
        OSError: it cannot be loaded.
    """

    def __init__(self, export_dir: str):
        self._signatures = client.load(export_dir).signatures
        for signature in saved_signatures.read(export_dir).values():
            if signature.takes_text:
                # The first call of a signature builds its graph's executor.
                ranks = signature.ranks()
                texts = {
                    name: np.full([1] * ranks[name], "a", object) for name in ranks
                }
                self.answers([{"signature": signature.name, "inputs": texts}], 1)

    def answers(
        self, requests: list[dict[str, Any]], max_rows: int
    ) -> list[dict[str, Any]]:
        """Returns an answer for each request.

        Args:
            requests: each with `signature`, a name, and `inputs`, name -> array
                [B, ...]. The rows of one request are computed together.
            max_rows: most rows of several requests to compute together.

        Returns:
            For each request a dict with `outputs`, name -> array [B, ...], and `rows`,
            the number of rows that were computed together; or with `error` and
            `is_invalid`, whether the request is to blame.
        """
        answers: list[dict[str, Any]] = [{} for _ in requests]
        for group in _groups(requests, max_rows):
            found = self._together([requests[index] for index in group])
            if len(group) > 1 and "error" in found[0]:
                # One bad request must not fail the others.
                found = [self._together([requests[index]])[0] for index in group]
            for index, answer in zip(group, found, strict=True):
                answers[index] = answer
        return answers

    def _together(self, requests):
        import tensorflow as tf

        try:
            columns = {
                name: tf.constant(
                    np.concatenate([request["inputs"][name] for request in requests])
                )
                for name in requests[0]["inputs"]
            }
            outputs = self._signatures[requests[0]["signature"]](**columns)
        except (tf.errors.OpError, ValueError) as error:
            is_invalid = isinstance(error, tf.errors.InvalidArgumentError)
            answer = {"error": client.reason_of(error), "is_invalid": is_invalid}
            return [answer] * len(requests)
        outputs = {name: value.numpy() for name, value in outputs.items()}
        sizes = [_num_rows(request) for request in requests]
        ends = np.cumsum(sizes)
        return [
            {
                "outputs": {
                    name: value[end - size : end] for name, value in outputs.items()
                },
                "rows": int(ends[-1]),
            }
            for size, end in zip(sizes, ends, strict=True)
        ]


def _num_rows(request):
    return len(next(iter(request["inputs"].values())))


def _groups(requests, max_rows):
    """Returns lists of indices of requests that can be computed together."""
    groups: list[list[int]] = []
    open_groups: dict[Any, tuple[list[int], int]] = {}
    for index, request in enumerate(requests):
        shapes = ((name, x.shape[1:]) for name, x in sorted(request["inputs"].items()))
        key = (request["signature"], *shapes)
        group, num_rows = open_groups.get(key, ([], 0))
        if not group or num_rows + _num_rows(request) > max_rows:
            group, num_rows = [], 0
            groups.append(group)
        group.append(index)
        open_groups[key] = (group, num_rows + _num_rows(request))
    return groups
