"""The model as LitServe's API object: LitServe batches requests and runs the model.

LitServe is optional, so its classes are extended in a function. `__reduce__` makes the
result picklable, because LitServe starts the process of the model with it.
"""

import functools
import logging
import multiprocessing.connection
import os
import queue
import signal
import threading
from typing import Any

from bert_tf.serving import server_model


def create(
    export_dir: str, failures: Any, backend: str, dtype: str, **settings: Any
) -> Any:
    """Returns the API object of a SavedModel.

    Args:
        export_dir: the SavedModel.
        failures: a queue that receives the reason if the model cannot be loaded.
        backend: the library that runs the model; see `server_model.LoadedModel`.
        dtype: data type of the computation.
        **settings: of `litserve.LitAPI`. `max_batch_size` limits both the requests per
            batch and the rows that are computed together.
    """
    import litserve

    class ModelApi(litserve.LitAPI):
        def __reduce__(self):
            state = {k: v for k, v in self.__dict__.items() if k != "_loop"}
            arguments = (export_dir, failures, backend, dtype)
            return functools.partial(create, **settings), arguments, state

        def setup(self, device):
            # Ctrl-C reaches all processes of a terminal, and SIGTERM of systemd all
            # processes of a service. This one first answers the requests that it has;
            # the main process ends it.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            end_with_parent()
            try:
                self._model = server_model.LoadedModel(export_dir, backend, dtype)
            except Exception as error:
                # LitServe would log a traceback; the main process reports the reason.
                logging.getLogger("litserve").setLevel(logging.CRITICAL + 1)
                failures.put(" ".join(str(error).split())[:500])
                raise

        def decode_request(self, request):
            return request

        def batch(self, inputs):
            return inputs

        def predict(self, requests):
            return self._model.answers(requests, self.max_batch_size)

        def unbatch(self, output):
            return output

        def encode_response(self, output):
            return output

    return ModelApi(loop=_waiting_loop(), **settings)


def end_with_parent() -> None:
    """Ends this process as soon as the main process no longer exists."""

    parent: Any = multiprocessing.parent_process()

    def wait_and_end():
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


def _waiting_loop():
    """Returns LitServe's loop of batches, without polling while there is no request.

    The original asks its queue a thousand times per second, which takes a sixth of a
    processor.
    """
    from litserve.loops import simple_loops

    class WaitingLoop(simple_loops.BatchedLoop):
        def get_batch_requests(self, lit_api, request_queue, transport):
            try:
                first = request_queue.get(timeout=1.0)
            except queue.Empty:
                return [], []
            requests = _WithFirst(first, request_queue)
            found: tuple[list[Any], list[Any]] = ([], [])
            # If this process gets no processor for the time that a batch may wait,
            # LitServe takes nothing from the queue.
            while requests.has_first:
                found = super().get_batch_requests(lit_api, requests, transport)
            return found

    return WaitingLoop()


class _WithFirst:
    """A queue with one more item in front."""

    def __init__(self, first: Any, rest: Any):
        self._first = [first]
        self._rest = rest

    @property
    def has_first(self) -> bool:
        """Whether the item has not been taken yet."""
        return bool(self._first)

    def get(self, timeout: float) -> Any:
        return self._first.pop() if self._first else self._rest.get(timeout=timeout)

    def get_nowait(self) -> Any:
        return self._first.pop() if self._first else self._rest.get_nowait()
