"""Data sets of TensorFlow Datasets by name; they are downloaded on first use."""

import contextlib
import functools
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

_SPLIT_NAME = re.compile(r"[\w-]+")
# Seconds before each attempt to reach a server; then the download fails.
_WAITS_S = (0.0, 0.5, 1.5)
_CONNECT_TIMEOUT_S = 5.0


def open_builder(name: str, data_dir: str | None) -> Any:
    """Returns the builder of a data set, without downloading it.

    Args:
        name: such as "glue/mrpc" or "squad/v1.1:3.0.0".
        data_dir: the folder of TensorFlow Datasets. None: its default.

    Raises:
        ImportError: tensorflow-datasets is not installed.
        ValueError: there is no data set of this name.
    """
    try:
        import tensorflow_datasets
    except ModuleNotFoundError:
        raise ImportError(
            "--tfds_name needs tensorflow-datasets, which is not installed; "
            "pip install 'bert_tf[datasets]'."
        ) from None
    try:
        return tensorflow_datasets.builder(name, data_dir=data_dir)
    except (tensorflow_datasets.core.DatasetNotFoundError, ValueError, KeyError) as e:
        reason = (str(e).strip().splitlines() or [""])[0].rstrip(".")
        raise ValueError(
            f"--tfds_name={name}: the data set does not exist ({reason:.200})."
        ) from None


@functools.cache
def prepared_builder(name: str, data_dir: str | None) -> Any:
    """Returns the builder of a data set, which is downloaded unless it is prepared.

    Args: as in `open_builder`.

    Raises:
        ImportError, ValueError: as `open_builder`.
        OSError: the data set cannot be downloaded or prepared.
    """
    builder = open_builder(name, data_dir)
    try:
        with _failing_fast():
            builder.download_and_prepare()
    except _UnreachableError as error:
        raise OSError(
            f"--tfds_name={name} cannot be downloaded: {error}. Without a network, "
            "prepare the data set on another machine (bert_tf does so with the same "
            f"--tfds_name) and copy its folder to {builder.data_dir}."
        ) from None
    # Builders raise errors of any class: each has its own code for its files.
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise OSError(f"--tfds_name={name} cannot be prepared: {reason}.") from error
    return builder


def check_split(builder: Any, split: str) -> None:
    """Checks that a data set has a split.

    Args:
        builder: returned by `open_builder` or `prepared_builder`.
        split: such as "train" or "train[:10%]".

    Raises:
        ValueError: it does not.
    """
    name = _SPLIT_NAME.match(split)
    if name is None or name[0] not in builder.info.splits:
        raise ValueError(
            f"--tfds_name={_name_of(builder)} has no split {split}, only "
            f"{', '.join(builder.info.splits)}; choose with --tfds_splits."
        )


def records(builder: Any, split: str) -> Iterator[dict[str, Any]]:
    """Yields the examples of a split as NumPy values, always in the same order.

    Raises:
        ValueError: there is no such split.
    """
    import tensorflow_datasets

    check_split(builder, split)
    # Files are read one after the other, without shuffling.
    config = tensorflow_datasets.ReadConfig(
        interleave_cycle_length=1, try_autocache=False
    )
    dataset = builder.as_dataset(split=split, read_config=config)
    yield from dataset.as_numpy_iterator()


def text_of(feature: Any, value: Any) -> str:
    """Returns a value as text; a class is its name, and an unknown class is ""."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(feature, "int2str"):
        # Test sets without labels contain -1.
        return feature.int2str(int(value)) if value >= 0 else ""
    return str(value)


def _name_of(builder: Any) -> str:
    return builder.info.full_name.rpartition("/")[0]


class _UnreachableError(Exception):
    """A server cannot be reached; the message says which one."""


@contextlib.contextmanager
def _failing_fast() -> Iterator[None]:
    """Lets a download fail within seconds if there is no network.

    TensorFlow Datasets tries to connect ten times with growing waits, 207 seconds in
    all. Here a server gets a few seconds to become reachable. All other failures, such
    as a lost connection or an overloaded server, are retried as before.
    """
    from urllib3.exceptions import NewConnectionError
    from urllib3.util.retry import Retry

    increment = Retry.increment

    def checked(retry, method=None, url=None, response=None, error=None, **more):
        pool = more.get("_pool")
        if isinstance(error, NewConnectionError) and pool is not None:
            _check_reachable(pool.host, pool.port or 443)
        return increment(
            retry, method=method, url=url, response=response, error=error, **more
        )

    # TensorFlow Datasets creates its own sessions, so only the class can be changed.
    setattr(Retry, "increment", checked)  # noqa: B010
    try:
        yield
    finally:
        setattr(Retry, "increment", increment)  # noqa: B010


def _check_reachable(host: str, port: int) -> None:
    for wait in _WAITS_S:
        time.sleep(wait)
        try:
            socket.create_connection((host, port), _CONNECT_TIMEOUT_S).close()
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return
    raise _UnreachableError(f"{host} cannot be reached ({reason})")
