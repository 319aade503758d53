"""Limits of one request to the server, which bound the memory of its answer."""

import dataclasses

import numpy as np

from bert_tf.serving import saved_signatures


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """Limits of a request."""

    max_rows: int
    # Number of texts times bytes of the longest one, to which some answers are padded.
    max_padded_bytes: int

    def check(
        self, signature: saved_signatures.Signature, inputs: dict[str, np.ndarray]
    ) -> None:
        """Raises ValueError if a request is too large.

        Args:
            signature: the signature that it calls.
            inputs: its arrays by name.
        """
        # Every ending of a choice is a row of the model.
        num_rows = max(
            array.size if array.dtype == object else len(array)
            for array in inputs.values()
        )
        if num_rows > self.max_rows:
            raise ValueError(
                f"Expected at most {self.max_rows} rows, got {num_rows}; send several "
                "requests."
            )
        if not signature.pads_answers:
            return
        most = longest(inputs)
        if num_rows * most > self.max_padded_bytes:
            raise ValueError(
                "Answers are padded to the longest text: expected rows x bytes of the "
                f"longest text of at most {self.max_padded_bytes}, got {num_rows} x "
                f"{most}; send long texts in requests of their own."
            )


def longest(inputs: dict[str, np.ndarray]) -> int:
    """Returns the length of a request's longest text in bytes.

    Args:
        inputs: its arrays of texts by name.
    """
    texts = (text for array in inputs.values() for text in array.flat)
    return max(map(_num_bytes, texts), default=0)


def _num_bytes(text):
    return len(text.encode() if isinstance(text, str) else text)
