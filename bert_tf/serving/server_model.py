"""The part of the server that runs the model: a loaded model and batches of requests.

Requests of one batch that call the same signature with rows of equal shape are computed
together.
"""

import os
from typing import Any

import numpy as np

from bert_tf import files
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.serving import client
from bert_tf.serving import saved_signatures
from bert_tf.serving import server_limits
from bert_tf.serving import warm_up_file

# Answers that are padded to the longest text are computed together up to this number of
# texts times bytes of the longest one. Otherwise one text of 1 MB would make the
# answers to all texts of its batch as wide as its own.
_MAX_PADDED_BYTES = 2**18


class LoadedModel:
    """A SavedModel in memory, which has answered its warm-up requests.

    Args:
        export_dir: the SavedModel.
        backend: the library that runs the model: "tensorflow" or "openvino".
        dtype: of OpenVINO's computation: "float32" or "bfloat16". With TensorFlow, the
            export determines the dtype.

    Raises:
        ImportError: OpenVINO is not installed.
        OSError: the SavedModel cannot be loaded, or fails its warm-up requests.
        ValueError: OpenVINO cannot compute it.
    """

    def __init__(
        self,
        export_dir: str,
        backend: str = fine_tuning_options.TENSORFLOW,
        dtype: str = "float32",
    ):
        if backend == fine_tuning_options.OPENVINO:
            # Needs Keras, which TensorFlow does without.
            from bert_tf.serving import openvino_model

            model = openvino_model.load(export_dir, dtype)
        else:
            model = client.load(export_dir)
        # OpenVINO reads the model's variables, which nothing else keeps, when it is
        # first called.
        self._model = model
        self._signatures = model.signatures
        definitions = saved_signatures.read(export_dir).values()
        self._padding = {one.name for one in definitions if one.pads_answers}
        for signature, inputs in _warm_up_requests(export_dir):
            request = {"signature": signature, "inputs": inputs}
            [answer] = self.answers([request], 1)
            if "error" in answer:
                raise OSError(
                    f"{export_dir} failed a warm-up request to its signature "
                    f"{signature}: {answer['error']}."
                )

    def answers(
        self, requests: list[dict[str, Any]], max_rows: int
    ) -> list[dict[str, Any]]:
        """Returns an answer for each request.

        Args:
            requests: each with `signature`, a name, and `inputs`, name -> array
                [B, ...]. The rows of one request are computed together.
            max_rows: maximum number of rows, from several requests, to compute
                together.

        Returns:
            For each request a dict with `outputs`, name -> array [B, ...], and `rows`,
            the number of rows that were computed together; or with `error` and
            `is_invalid`, whether the request is to blame.
        """
        answers: list[dict[str, Any]] = [{} for _ in requests]
        for group in _groups(requests, max_rows, self._padding):
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
            answer = {"error": client.refusal_reason(error), "is_invalid": is_invalid}
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


def _warm_up_requests(export_dir):
    """Returns signatures and inputs; the first call of a signature is slow."""
    path = os.path.join(export_dir, *warm_up_file.PATH)
    if files.exists(path):
        return warm_up_file.read(path)
    # Of an export of an earlier version.
    return [
        (name, {key: np.full([1] * rank, "a", object) for key, rank in ranks.items()})
        for name, signature in saved_signatures.read(export_dir).items()
        if signature.takes_text
        for ranks in [signature.ranks()]
    ]


def _num_rows(request):
    return len(next(iter(request["inputs"].values())))


def _groups(requests, max_rows, padding):
    """Returns lists of indices of requests that can be computed together.

    Args:
        requests: see `LoadedModel.answers`.
        max_rows: see `LoadedModel.answers`.
        padding: the signatures that pad their answers to the longest text.
    """
    groups: list[list[int]] = []
    open_groups: dict[Any, tuple[list[int], int, int]] = {}
    for index, request in enumerate(requests):
        inputs = request["inputs"]
        shapes = ((name, x.shape[1:]) for name, x in sorted(inputs.items()))
        key = (request["signature"], *shapes)
        own = server_limits.longest(inputs) if request["signature"] in padding else 0
        group, num_rows, longest = open_groups.get(key, ([], 0, 0))
        num_rows, longest = num_rows + _num_rows(request), max(longest, own)
        is_full = num_rows > max_rows or num_rows * longest > _MAX_PADDED_BYTES
        if not group or is_full:
            group, num_rows, longest = [], _num_rows(request), own
            groups.append(group)
        group.append(index)
        open_groups[key] = (group, num_rows, longest)
    return groups
