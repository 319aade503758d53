"""Runs signatures of a SavedModel through TensorFlow's C API, as a model server does.

Start it in a process of its own, with the Python of any environment: it imports neither
TensorFlow nor this package, and loads the C++ libraries of their wheels.

    python c_api_session.py SITE_PACKAGES REQUESTS.json

REQUESTS.json has `export_dir` and `calls`. A call has `inputs`, tensor name ->
`{"dtype", "shape", "values"}`, and `outputs`, a list of tensor names. The answers are
printed as JSON: for each call a list with the values of its outputs, flattened.
"""

import ctypes
import glob
import json
import sys

FLOAT, INT32, STRING, INT64 = 1, 3, 7, 9  # TF_DataType
NUMBERS = {FLOAT: ctypes.c_float, INT32: ctypes.c_int32, INT64: ctypes.c_int64}
STRING_BYTES = 24  # sizeof(TF_TString)


class Output(ctypes.Structure):
    """TF_Output."""

    _fields_ = (("operation", ctypes.c_void_p), ("index", ctypes.c_int))


def load(site_packages):
    """Returns the C API of a TensorFlow wheel, with the ops of TensorFlow Text."""
    folder = f"{site_packages}/tensorflow"
    framework = f"{folder}/libtensorflow_framework.so.2"
    ctypes.CDLL(framework, ctypes.RTLD_GLOBAL)
    api = ctypes.CDLL(f"{folder}/libtensorflow_cc.so.2", ctypes.RTLD_GLOBAL)
    for name in (
        *("TF_NewStatus", "TF_NewGraph", "TF_NewSessionOptions", "TF_LoadLibrary"),
        *("TF_LoadSessionFromSavedModel", "TF_GraphOperationByName", "TF_TensorData"),
        *("TF_AllocateTensor", "TF_StringGetDataPointer"),
    ):
        getattr(api, name).restype = ctypes.c_void_p
    for name in ("TF_StringGetSize", "TF_TensorByteSize"):
        getattr(api, name).restype = ctypes.c_size_t
    api.TF_Message.restype = ctypes.c_char_p
    api.TF_Version.restype = ctypes.c_char_p
    api.status = ctypes.c_void_p(api.TF_NewStatus())
    for path in sorted(glob.glob(f"{site_packages}/tensorflow_text/python/ops/_*.so")):
        if "_fast_" in path:  # The two libraries that our graphs need.
            api.TF_LoadLibrary(path.encode(), api.status)
            check(api)
    return api


def check(api):
    if api.TF_GetCode(api.status):
        raise RuntimeError(api.TF_Message(api.status).decode())


class Session:
    """A loaded SavedModel."""

    def __init__(self, api, export_dir):
        self._api = api
        self._graph = ctypes.c_void_p(api.TF_NewGraph())
        tags = (ctypes.c_char_p * 1)(b"serve")
        self._session = ctypes.c_void_p(
            api.TF_LoadSessionFromSavedModel(
                ctypes.c_void_p(api.TF_NewSessionOptions()),
                None,
                export_dir.encode(),
                tags,
                1,
                self._graph,
                None,
                api.status,
            )
        )
        check(api)

    def run(self, inputs, outputs):
        """Returns the flattened values of outputs."""
        api = self._api
        given = (Output * len(inputs))(*map(self._output, inputs))
        tensors = [self._tensor(**value) for value in inputs.values()]
        fetched = (Output * len(outputs))(*map(self._output, outputs))
        found = (ctypes.c_void_p * len(outputs))()
        api.TF_SessionRun(
            self._session,
            None,
            given,
            (ctypes.c_void_p * len(tensors))(*tensors),
            len(tensors),
            fetched,
            found,
            len(outputs),
            None,
            0,
            None,
            api.status,
        )
        check(api)
        return [self._values(ctypes.c_void_p(tensor)) for tensor in found]

    def _output(self, name):
        operation, _, index = name.partition(":")
        pointer = self._api.TF_GraphOperationByName(self._graph, operation.encode())
        return Output(pointer, int(index))

    def _tensor(self, dtype, shape, values):
        api = self._api
        size = STRING_BYTES if dtype == STRING else ctypes.sizeof(NUMBERS[dtype])
        tensor = api.TF_AllocateTensor(
            dtype,
            (ctypes.c_int64 * len(shape))(*shape),
            len(shape),
            ctypes.c_size_t(size * len(values)),
        )
        data = api.TF_TensorData(ctypes.c_void_p(tensor))
        if dtype == STRING:
            for number, text in enumerate(values):
                place = ctypes.c_void_p(data + number * STRING_BYTES)
                content = text.encode()
                api.TF_StringInit(place)
                api.TF_StringCopy(place, content, ctypes.c_size_t(len(content)))
        else:
            array = (NUMBERS[dtype] * len(values))(*values)
            ctypes.memmove(data, array, ctypes.sizeof(array))
        return tensor

    def _values(self, tensor):
        api = self._api
        dtype = api.TF_TensorType(tensor)
        data = api.TF_TensorData(tensor)
        num_bytes = api.TF_TensorByteSize(tensor)
        if dtype != STRING:
            kind = NUMBERS[dtype]
            count = num_bytes // ctypes.sizeof(kind)
            return list((kind * count).from_address(data)) if count else []
        texts = []
        for start in range(0, num_bytes, STRING_BYTES):
            place = ctypes.c_void_p(data + start)
            size = api.TF_StringGetSize(place)
            pointer = api.TF_StringGetDataPointer(place)
            texts.append(ctypes.string_at(pointer, size).decode())
        return texts


def main(site_packages, requests_file):
    with open(requests_file, encoding="utf-8") as file:
        requests = json.load(file)
    api = load(site_packages)
    print(f"TensorFlow {api.TF_Version().decode()}", file=sys.stderr)
    session = Session(api, requests["export_dir"])
    answers = [session.run(**call) for call in requests["calls"]]
    assert not [name for name in sys.modules if name.startswith("tensorflow")]
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
