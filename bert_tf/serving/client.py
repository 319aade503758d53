"""Queries an exported model: a SavedModel on disk, or one in TensorFlow Serving."""

import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from bert_tf import files

DEFAULT_SIGNATURE = "serving_default"
TEXTS_PER_CALL = 32
TIMEOUT_SECONDS = 60.0


class Client:
    """Queries one model, on disk or on a server, and converts its outputs into records.

    Args:
        call: calls a signature: takes its name and a dict of lists, one per input, and
            returns a dict of lists, one per output.
    """

    def __init__(self, call: Callable[[str, dict[str, list]], dict[str, list]]):
        self._call = call
        self._labels: list[str] | None = None

    def ask(
        self, *, signature: str = DEFAULT_SIGNATURE, **inputs: Sequence
    ) -> list[dict[str, Any]]:
        """Returns the model's answers.

        Args:
            signature: the signature to call, such as `query` of a bi-encoder.
            **inputs: lists of equal length, one per input of the model: `text`, with
                `text_b` for a model of pairs, or with `endings`, a list of texts for
                each; or `question` and `context`.

        Returns:
            One record per query. A classifier returns `label` (or `labels`, if a text
            can have several) and `probabilities` by label, or only `value`. A multiple
            choice model returns `label` (the number of the most likely ending),
            `ending` (its text) and `probabilities` by number. A question answering
            model returns `answer`, `start`, `end`, `score`, `no_answer_score`, a
            tagger `words`, `tags`, `starts`, `ends`, and a masked-word model `masks`,
            for each [MASK] a list of dicts with `token` and `probability`, and
            `status`: "ok", or "no_mask" or "too_long" for a text without candidates.

        Raises:
            OSError: the server cannot be reached.
            ValueError: the model does not take these inputs, or answers with NaN.
        """
        lengths = {name: len(values) for name, values in inputs.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{count} of {name}" for name, count in lengths.items())
            raise ValueError(f"Expected the same number of each input, got {counts}.")
        answers: list[dict[str, Any]] = []
        for start in range(0, max(lengths.values()), TEXTS_PER_CALL):
            part = slice(start, start + TEXTS_PER_CALL)
            batch = {name: list(values[part]) for name, values in inputs.items()}
            answers += self._answers(signature, batch)
        return answers

    def predict(
        self, texts: Sequence[str], texts_b: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Returns the answers for texts, or for pairs of texts. See `ask`."""
        if texts_b is None:
            return self.ask(text=texts)
        return self.ask(text=texts, text_b=texts_b)

    def labels(self) -> list[str]:
        """Returns the names of the classes, in the order of the model's outputs."""
        if self._labels is None:
            self._labels = self._call("labels", {"text": [""]})["labels"][0]
        return self._labels

    def _answers(self, signature, inputs):
        endings = inputs.get("endings")
        if endings is not None:
            most = max(map(len, endings))
            padded = [[*own, *[""] * (most - len(own))] for own in endings]
            inputs = inputs | {"endings": padded}
        outputs = self._call(signature, inputs)
        for name, values in outputs.items():
            if _has_nan(values):
                raise ValueError(
                    f"The model returned NaN ({name}), so its weights are invalid; "
                    "export an earlier checkpoint."
                )
        rows = [
            dict(zip(outputs, values, strict=True))
            for values in zip(*outputs.values(), strict=True)
        ]
        if "num_masks" in outputs:
            return [_masks(row) for row in rows]
        if "tags" in outputs:
            return [_without_padding(row) for row in rows]
        if endings is not None:
            return [_choice(*both) for both in zip(rows, endings, strict=True)]
        if "probabilities" in outputs:
            return [_named(row, self.labels()) for row in rows]
        return [{name: row[name] for name in _in_order(row)} for row in rows]


def open_saved_model(export_dir: str) -> Client:
    """Returns a client of a SavedModel on disk, which is loaded once.

    Raises:
        OSError: the SavedModel does not exist or cannot be read.
        ValueError: on a query, if the SavedModel was not exported by this package.
    """
    if not files.exists(os.path.join(export_dir, "saved_model.pb")):
        raise FileNotFoundError(
            f"{export_dir} contains no saved_model.pb; expected a folder written by "
            "export_saved_model."
        )
    import tensorflow as tf

    from bert_tf.tokenization import in_graph  # noqa: F401, registers TF Text's ops

    try:
        model = tf.saved_model.load(export_dir)
    except (tf.errors.OpError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise OSError(f"{export_dir} cannot be loaded: {reason}.") from error

    def call(name, inputs):
        signature = _signature(model, name, export_dir)
        expected = signature.structured_input_signature[1]
        if set(inputs) != set(expected):
            raise ValueError(
                f"The model in {export_dir} takes {' and '.join(sorted(expected))}, "
                f"got {' and '.join(inputs)}."
            )
        columns = {key: tf.constant(values) for key, values in inputs.items()}
        return {
            key: _as_list(values.numpy())
            for key, values in signature(**columns).items()
        }

    return Client(call)


def open_server(url: str) -> Client:
    """Returns a client of TensorFlow Serving's REST interface.

    Args:
        url: such as `http://localhost:8501/v1/models/topics`; `/versions/2` at the end
            selects a version.

    Raises:
        ValueError: the URL is not that of a model.
    """
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")) or "/v1/models/" not in url:
        raise ValueError(
            f"{url!r} is not the address of a model; expected "
            "http://HOST:PORT/v1/models/NAME."
        )

    def call(name, inputs):
        reply = _post(f"{url}:predict", {"signature_name": name, "inputs": inputs})
        if not isinstance(reply, dict) or "outputs" not in reply:
            raise ValueError(
                f"{url} returned no outputs but {json.dumps(reply)[:200]}."
            )
        outputs = reply["outputs"]
        # The server leaves out the name if a signature has only one output.
        return outputs if isinstance(outputs, dict) else {name: outputs}

    return Client(call)


def _has_nan(values):
    if isinstance(values, list):
        return any(map(_has_nan, values))
    return isinstance(values, float) and math.isnan(values)


def _named(row, labels):
    probabilities = dict(zip(labels, row["probabilities"], strict=True))
    if "label" in row:
        return {"label": row["label"], "probabilities": probabilities}
    # The list is padded with "".
    chosen = [label for label in row["labels"] if label]
    return {"labels": chosen, "probabilities": probabilities}


def _choice(row, endings):
    numbers = map(str, range(len(endings)))
    own = row["probabilities"][: len(endings)]
    return {
        "label": row["label"],
        "ending": endings[int(row["label"])],
        "probabilities": dict(zip(numbers, own, strict=True)),
    }


def _masks(row):
    count = row["num_masks"] if row["status"] == "ok" else 0
    candidates = zip(row["tokens"][:count], row["probabilities"][:count], strict=True)
    masks = [
        [
            {"token": token, "probability": probability}
            for token, probability in zip(*mask, strict=True)
        ]
        for mask in candidates
    ]
    return {"masks": masks, "status": row["status"]}


def _without_padding(row):
    # Padding has negative positions.
    count = sum(start >= 0 for start in row["starts"])
    return {name: row[name][:count] for name in _in_order(row)}


def _in_order(row):
    # A server sorts its outputs by name; people read them in this order.
    order = ("answer", "start", "end", "score", "words", "tags", "starts", "ends")
    known = [name for name in order if name in row]
    return [*known, *(name for name in row if name not in known)]


def _signature(model, name, export_dir):
    if name not in model.signatures:
        raise ValueError(
            f"The SavedModel in {export_dir} has no signature {name}; it has "
            f"{', '.join(sorted(model.signatures))}."
        )
    return model.signatures[name]


def _as_list(array):
    if array.dtype == object:
        return [_as_text(value) for value in array.tolist()]
    return array.tolist()


def _as_text(value):
    return value.decode() if isinstance(value, bytes) else [_as_text(v) for v in value]


def _post(url, body):
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:
            text = reply.read()
    except urllib.error.HTTPError as error:
        with error:
            raise ValueError(f"{url} refused the query: {_refusal(error)}.") from error
    except urllib.error.URLError as error:
        raise ConnectionError(
            f"{url} cannot be reached: {error.reason}. Is the server running there?"
        ) from error
    except TimeoutError as error:
        raise TimeoutError(
            f"{url} did not answer within {TIMEOUT_SECONDS:.0f} seconds."
        ) from error
    return files.parse_json(
        text, f"The answer of {url}", advice="expected the REST API of a model server"
    )


def _refusal(error):
    text = error.read().decode("utf-8", "replace")
    try:
        text = json.loads(text)["error"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = text or error.reason
    return f"{error.code}, {' '.join(str(text).split())[:300].rstrip('.')}"
