"""Calls a model through TensorFlow Serving's gRPC API."""

import json
from collections.abc import Callable

import tensorflow as tf

from bert_tf import files
from bert_tf.serving import connection

# gRPC makes at most five attempts, whatever its configuration says.
MAX_RETRIES = 4
_PREDICT = "/tensorflow.serving.PredictionService/Predict"


def caller(
    address: connection.Address, settings: connection.Settings
) -> Callable[[str, dict[str, list]], dict[str, list]]:
    """Returns a function that calls a signature; see `client.Client`.

    Raises:
        ImportError: tensorflow-serving-api is not installed.
        ValueError: there are more retries than gRPC makes.
    """
    try:
        import grpc
        from tensorflow_serving.apis import predict_pb2
    except ImportError as error:
        raise ImportError(
            "gRPC needs tensorflow-serving-api, which is not installed; run "
            "pip install 'bert_tf[serving]', or use the server's REST port with "
            "http://."
        ) from error

    if settings.num_retries > MAX_RETRIES:
        raise ValueError(
            f"--num_retries={settings.num_retries}: gRPC makes at most {MAX_RETRIES} "
            "retries; pass a smaller number, or use the server's REST port."
        )
    predict = _channel(address, settings).unary_unary(
        _PREDICT,
        request_serializer=predict_pb2.PredictRequest.SerializeToString,
        response_deserializer=predict_pb2.PredictResponse.FromString,
    )
    metadata = [(name.lower(), value) for name, value in settings.header_pairs()]

    def call(name, inputs):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = address.name
        request.model_spec.signature_name = name
        if address.version is not None:
            request.model_spec.version.value = address.version
        if address.label is not None:
            request.model_spec.version_label = address.label
        for key, values in inputs.items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(values))
        try:
            reply = predict(
                request, timeout=settings.timeout_seconds, metadata=metadata
            )
        except grpc.RpcError as error:
            raise _clear_error(error, address, settings) from error
        return {key: tf.make_ndarray(value) for key, value in reply.outputs.items()}

    return call


def _channel(address, settings):
    import grpc

    retry_policy = {
        "maxAttempts": settings.num_retries + 1,
        "initialBackoff": f"{connection.BACKOFF_SECONDS}s",
        "maxBackoff": f"{connection.MAX_BACKOFF_SECONDS}s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
    }
    method: dict = {"name": [{}]}
    if settings.num_retries:  # A policy with one attempt is invalid.
        method["retryPolicy"] = retry_policy
    options = [
        ("grpc.service_config", json.dumps({"methodConfig": [method]})),
        # Answers of long texts exceed the default of 4 MB.
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
    ]
    if not address.has_tls:
        return grpc.insecure_channel(address.target, options=options)
    certificates = [
        _content(path)
        for path in (
            settings.ca_file,
            settings.client_key_file,
            settings.client_cert_file,
        )
    ]
    credentials = grpc.ssl_channel_credentials(*certificates)
    return grpc.secure_channel(address.target, credentials, options=options)


def _content(path):
    if path is None:
        return None
    with files.open_file(path, "rb") as file:
        return file.read()


def _clear_error(error, address, settings):
    import grpc

    code = error.code()
    details = " ".join(str(error.details()).split())[:300].rstrip(".")
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimeoutError(
            f"{address.url} did not answer within {settings.timeout_seconds:g} seconds."
        )
    if code == grpc.StatusCode.UNAVAILABLE:
        return ConnectionError(
            f"{address.url} cannot be reached: {details}. Is the server running there?"
        )
    return ValueError(f"{address.url} refused the query: {code.name}, {details}.")
