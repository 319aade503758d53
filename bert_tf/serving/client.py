"""Queries an exported model: a SavedModel on disk, or one in TensorFlow Serving."""

import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_tf import progress as progress_module
from bert_tf.serving import connection
from bert_tf.serving import loaded_model
from bert_tf.serving import options as serving_options

DEFAULT_SIGNATURE = "serving_default"
_ENTITY = ("label", "text", "start", "end", "score")


class Client:
    """Queries one model, on disk or on a server, and converts its outputs into records.

    Args:
        call: calls a signature: takes its name and a dict of lists, one per input, and
            returns a dict of lists, one per output.
    """

    def __init__(self, call: Callable[[str, dict[str, list]], dict[str, list]]):
        self._call = call
        self._labels: list[str] | None = None  # In the order of the model's outputs.

    def ask(
        self, *, signature: str = DEFAULT_SIGNATURE, **inputs: Iterable
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
            tagger `words`, `tags`, `starts`, `ends` (its signature `entities` also
            `probabilities` and `entities`), and a masked-word model `masks`,
            for each [MASK] a list of dicts with `token` and `probability`, and
            `status`: "ok", or "no_mask" or "too_long" for a text without candidates.

        Raises:
            OSError: the server cannot be reached.
            ValueError: the model does not take these inputs, or answers with NaN.
        """
        return list(self.answers(signature=signature, **inputs))

    def answers(
        self, *, signature: str = DEFAULT_SIGNATURE, **inputs: Iterable
    ) -> Iterator[dict[str, Any]]:
        """Yields the answers of `ask`, and calls the model when they are needed."""
        columns = {name: _listed(name, values) for name, values in inputs.items()}
        loaded_model.check_lengths(columns)
        total = len(next(iter(columns.values())))
        for start in range(0, total, serving_options.QUERIES_PER_CALL):
            part = slice(start, start + serving_options.QUERIES_PER_CALL)
            batch = {name: values[part] for name, values in columns.items()}
            yield from self._answers(signature, batch)
            done = min(part.stop, total)
            progress_module.report("query", done, total, unit="queries")

    def _answers(self, signature, inputs):
        endings = inputs.get("endings")
        if endings is not None:
            most = max(map(len, endings))
            padded = [[*texts, *[""] * (most - len(texts))] for texts in endings]
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
        # The signature `ids` has some of these outputs, but no answers in words.
        if {"num_masks", "status"} <= outputs.keys():
            return [_masks(row) for row in rows]
        if "tags" in outputs:
            return [_without_padding(row) for row in rows]
        if endings is not None:
            return [_choice(*both) for both in zip(rows, endings, strict=True)]
        if "probabilities" in outputs and outputs.keys() & {"label", "labels"}:
            # A server may have loaded another version since the last call.
            if not all(_has_labels(row, self._labels) for row in rows):
                self._labels = self._call("labels", {"text": [""]})["labels"][0]
            return [_named(row, self._labels) for row in rows]
        return [{name: row[name] for name in _in_order(row)} for row in rows]


def open_saved_model(export_dir: str) -> Client:
    """Returns a client of a SavedModel on disk, which is loaded once.

    Args:
        export_dir: the folder of a SavedModel, or that of a model, whose highest
            version is opened.

    Raises:
        OSError: the SavedModel does not exist or cannot be read.
        ValueError: on a query that the model refuses, or if the SavedModel was not
            exported by this package.
    """
    model = loaded_model.LoadedModel(loaded_model.load(export_dir))
    decode = np.vectorize(bytes.decode, otypes=[object])

    def call(name, inputs):
        if name not in model.signatures:
            raise ValueError(
                f"The SavedModel in {export_dir} has no signature {name}; it has "
                f"{', '.join(sorted(model.signatures))}."
            )
        model.signatures[name].check_names(inputs)
        try:
            outputs = model.compute(name, inputs)
        except ValueError as error:
            raise ValueError(
                f"The model in {export_dir} refused the query: {error}"
            ) from error
        return {
            key: (decode(values) if values.dtype == object else values).tolist()
            for key, values in outputs.items()
        }

    return Client(call)


def open_server(
    url: str,
    timeout_seconds: float = serving_options.TIMEOUT_SECONDS,
    headers: Iterable[str] = (),
) -> Client:
    """Returns a client of a model in TensorFlow Serving, or in `serve_model`.

    See `connection.Connection` for the arguments and errors.
    """
    return Client(connection.Connection(url, timeout_seconds, headers).call)


def _listed(name, values):
    """Returns the values of an input as a list; refuses the characters of a text."""
    if isinstance(values, str | bytes):
        raise ValueError(f"{name}: expected a list of texts, got one string.")
    values = list(values)
    if name != "endings":
        return values
    for index, endings in enumerate(values):
        # A model takes "" for the padding of a row.
        texts = endings if isinstance(endings, tuple | list) else []
        if len(texts) < 2 or not all(isinstance(x, str) and x.strip() for x in texts):
            raise ValueError(
                f"endings: query {index} has {endings!r:.60}; expected a list of two "
                "or more texts, none of them empty."
            )
    return values


def _has_nan(values):
    if isinstance(values, list):
        return any(map(_has_nan, values))
    # Servers that write standard JSON send null.
    return values is None or (isinstance(values, float) and math.isnan(values))


def _has_labels(row, labels):
    """Returns whether the classes of an answer can be `labels`, in their order."""
    probabilities = row["probabilities"]
    if labels is None or len(labels) != len(probabilities):
        return False
    if "label" in row:
        return labels[probabilities.index(max(probabilities))] == row["label"]
    return set(row["labels"]) <= {*labels, ""}


def _named(row, labels):
    probabilities = dict(zip(labels, row["probabilities"], strict=True))
    if "label" in row:
        return {"label": row["label"], "probabilities": probabilities}
    # The list is padded with "".
    chosen = [label for label in row["labels"] if label]
    return {"labels": chosen, "probabilities": probabilities}


def _choice(row, endings):
    probabilities = row["probabilities"][: len(endings)]
    return {
        "label": row["label"],
        "ending": endings[int(row["label"])],
        "probabilities": {str(n): value for n, value in enumerate(probabilities)},
    }


def _masks(row):
    count = row["num_masks"] if row["status"] == "ok" else 0
    masks = [
        [
            {"token": token, "probability": probability}
            for token, probability in zip(tokens, probabilities, strict=True)
        ]
        for tokens, probabilities in zip(
            row["tokens"][:count], row["probabilities"][:count], strict=True
        )
    ]
    return {"masks": masks, "status": row["status"]}


def _without_padding(row):
    # Padding has negative positions.
    entities = {name: row.pop(f"entity_{name}s", None) for name in _ENTITY}
    count = sum(start >= 0 for start in row["starts"])
    words = {name: row[name][:count] for name in _in_order(row)}
    if entities["label"] is None:
        return words
    rows = [
        dict(zip(_ENTITY, one, strict=True))
        for one in zip(*entities.values(), strict=True)
    ]
    return words | {"entities": [one for one in rows if one["start"] >= 0]}


def _in_order(row):
    # A server sorts its outputs by name; people read them in this order.
    order = ("answer", "start", "end", "score", "words", "tags", "starts", "ends")
    known = [name for name in order if name in row]
    return [*known, *(name for name in row if name not in known)]
