"""Stands in for TensorFlow Serving's gRPC API in tests, with its failures."""

import concurrent.futures
import contextlib

import pytest
import tensorflow as tf

grpc = pytest.importorskip("grpc")
predict_pb2 = pytest.importorskip(
    "tensorflow_serving.apis.predict_pb2", reason="needs tensorflow-serving-api"
)


class GrpcDouble:
    """Answers with one SavedModel.

    Args:
        export_dir: the SavedModel.
        fail: called with the context of every call before the answer.

    Attributes:
        requests: the requests that it received.
        metadata: the metadata of each request.
    """

    def __init__(self, export_dir, fail=lambda context: None):
        self._model = tf.saved_model.load(export_dir)
        self._fail = fail
        self.requests = []
        self.metadata = []

    def predict(self, request, context):
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self._fail(context)
        spec = request.model_spec
        if spec.name != "topics":
            context.abort(
                grpc.StatusCode.NOT_FOUND, f"Servable not found: {spec.name}."
            )
        signature = self._model.signatures[spec.signature_name]
        inputs = {
            name: tf.constant(tf.make_ndarray(tensor))
            for name, tensor in request.inputs.items()
        }
        reply = predict_pb2.PredictResponse()
        for name, value in signature(**inputs).items():
            reply.outputs[name].CopyFrom(tf.make_tensor_proto(value.numpy()))
        return reply


@contextlib.contextmanager
def serving(predict, *, credentials=None):
    """Yields the host and port of a server whose Predict is this function."""
    handler = grpc.unary_unary_rpc_method_handler(
        predict,
        request_deserializer=predict_pb2.PredictRequest.FromString,
        response_serializer=predict_pb2.PredictResponse.SerializeToString,
    )
    service = grpc.method_handlers_generic_handler(
        "tensorflow.serving.PredictionService", {"Predict": handler}
    )
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers((service,))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=None).wait()
