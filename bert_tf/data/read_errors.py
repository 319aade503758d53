"""What tf.data raises for a damaged record, as one clear sentence."""

import contextlib
import re

import tensorflow as tf


@contextlib.contextmanager
def clear_errors():
    """Turns what TensorFlow raises for a damaged record into a ValueError.

    Put it around the iteration over a dataset of `batching`.

    Raises:
        ValueError: with file and byte, as `RecordFiles.read` raised it inside tf.data.
    """
    try:
        yield
    except tf.errors.OpError as error:
        message = error.message or ""
        raised = re.search(r"(?:ValueError|OSError): (.+)", message)
        if raised:
            raise ValueError(raised[1].strip()) from None
        if "ParseExample" in message:
            reason = re.search(r"Key: .*", message)
            raise ValueError(
                "A record has other columns or lengths than the first one of its "
                f"file ({reason[0] if reason else message})."
            ) from None
        raise
