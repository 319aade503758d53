"""Asks an exported model: a SavedModel on disk, or one behind TensorFlow Serving."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from collections.abc import Sequence

from bert_tf import files

TEXTS_PER_CALL = 32
SECONDS_TO_WAIT = 60.0


class Client:
    """Asks one model, wherever it runs, and names its classes.

    Args:
        call: function from the name of a signature and a dict of lists, one an input,
            to a dict of lists, one an output.
    """

    def __init__(self, call: Callable[[str, dict], dict]):
        self._call = call
        self._labels = None

    def predict(
        self, texts: Sequence[str], texts_b: Sequence[str] | None = None
    ) -> list[dict]:
        """Returns the model's answers.

        Args:
            texts: B texts.
            texts_b: B second texts for a model of pairs, else None.

        Returns:
            For each a dict: `label`, `probabilities` by label.

        Raises:
            OSError: the server cannot be reached.
            ValueError: the model does not take these inputs.
        """
        if texts_b is not None and len(texts_b) != len(texts):
            raise ValueError(
                f"Expected as many second texts as texts ({len(texts)}), got "
                f"{len(texts_b)}."
            )
        answers = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            part = slice(start, start + TEXTS_PER_CALL)
            inputs = {"text": list(texts[part])}
            if texts_b is not None:
                inputs["text_b"] = list(texts_b[part])
            answers += self._answers(self._call("serving_default", inputs))
        return answers

    def labels(self) -> list[str]:
        """Returns the names of the classes, in the order of the model's outputs."""
        if self._labels is None:
            self._labels = self._call("labels", {"text": [""]})["labels"][0]
        return self._labels

    def _answers(self, outputs):
        labels = self.labels()
        return [
            {"label": label, "probabilities": dict(zip(labels, row, strict=True))}
            for label, row in zip(
                outputs["label"], outputs["probabilities"], strict=True
            )
        ]


def open_saved_model(export_dir: str) -> Client:
    """Returns a client of a SavedModel on disk, loaded once.

    Raises:
        OSError: there is none, or it cannot be read.
        ValueError: it was not exported by this package.
    """
    if not files.exists(os.path.join(export_dir, "saved_model.pb")):
        raise FileNotFoundError(
            f"{export_dir} holds no saved_model.pb; expected a folder that "
            "export_saved_model wrote."
        )
    import tensorflow as tf

    from bert_tf.tokenization import in_graph  # noqa: F401, registers its ops

    try:
        model = tf.saved_model.load(export_dir)
    except (tf.errors.OpError, OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise OSError(f"{export_dir} cannot be loaded: {reason}.") from error

    def call(name, inputs):
        signature = _signature(model, name, export_dir)
        wanted = signature.structured_input_signature[1]
        if set(inputs) != set(wanted):
            raise ValueError(
                f"The model in {export_dir} takes {' and '.join(sorted(wanted))}, got "
                f"{' and '.join(inputs)}."
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
        url: such as `http://localhost:8501/v1/models/topics`, with `/versions/2` at
            the end for one version.

    Raises:
        ValueError: it is no such address.
    """
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")) or "/v1/models/" not in url:
        raise ValueError(
            f"{url!r} is no address of a model; expected "
            "http://HOST:PORT/v1/models/NAME."
        )

    def call(name, inputs):
        reply = _post(f"{url}:predict", {"signature_name": name, "inputs": inputs})
        if not isinstance(reply, dict) or "outputs" not in reply:
            raise ValueError(f"{url} gave no outputs, but {json.dumps(reply)[:200]}.")
        outputs = reply["outputs"]
        # The server leaves the name out where a signature has one output.
        return outputs if isinstance(outputs, dict) else {name: outputs}

    return Client(call)


def _signature(model, name, export_dir):
    if name not in model.signatures:
        raise ValueError(
            f"The SavedModel in {export_dir} has no signature {name}; expected one "
            "that export_saved_model wrote."
        )
    return model.signatures[name]


def _as_list(array):
    if array.dtype == object:
        return [
            text.decode() if isinstance(text, bytes) else [t.decode() for t in text]
            for text in array
        ]
    return array.tolist()


def _post(url, body):
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_TO_WAIT) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            raise ValueError(f"{url} refused: {_refusal(error)}.") from error
    except urllib.error.URLError as error:
        raise ConnectionError(
            f"{url} cannot be reached: {error.reason}. Is the server running there?"
        ) from error
    except TimeoutError as error:
        raise TimeoutError(
            f"{url} gave no answer within {SECONDS_TO_WAIT:.0f} seconds."
        ) from error
    except ValueError as error:
        raise ValueError(f"{url} answered with no JSON ({error}).") from error


def _refusal(error):
    text = error.read().decode("utf-8", "replace")
    try:
        text = json.loads(text)["error"]
    except (ValueError, TypeError, KeyError):
        text = text or error.reason
    return f"{error.code}, {' '.join(str(text).split())[:300].rstrip('.')}"
