"""The file of warm-up requests in an export, in TensorFlow Serving's format.

It has TFRecords of the message `PredictionLog`
(tensorflow_serving/apis/prediction_log.proto). The fields that we need are declared
here, so that neither an export nor our server needs tensorflow-serving-api. A file that
a user wrote may have other fields and logs, which are skipped.
"""

import functools
from typing import Any

import numpy as np

PATH = ("assets.extra", "tf_serving_warmup_requests")
_DEFAULT_SIGNATURE = "serving_default"
# A map is encoded as a repeated message of `key` and `value`.
_SCHEMA = """
name: "bert_tf/prediction_log.proto" package: "bert_tf" syntax: "proto3"
dependency: "tensorflow/core/framework/tensor.proto"
message_type { name: "ModelSpec"
  field { name: "signature_name" number: 3 type: TYPE_STRING } }
message_type { name: "Input"
  field { name: "key" number: 1 type: TYPE_STRING }
  field { name: "value" number: 2 type_name: ".tensorflow.TensorProto" } }
message_type { name: "PredictRequest"
  field { name: "model_spec" number: 1 type_name: ".bert_tf.ModelSpec" }
  field { name: "inputs" number: 2 type_name: ".bert_tf.Input" label: LABEL_REPEATED } }
message_type { name: "PredictLog"
  field { name: "request" number: 1 type_name: ".bert_tf.PredictRequest" } }
message_type { name: "PredictionLog"
  field { name: "predict_log" number: 6 type_name: ".bert_tf.PredictLog" } }
"""


def read(path: str) -> list[tuple[str, dict[str, np.ndarray]]]:
    """Returns the requests of a file: signature, and inputs by name.

    Raises:
        ValueError: the file is damaged.
    """
    import tensorflow as tf
    from google.protobuf import message

    requests = []
    try:
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            log = _message().FromString(record)
            if not log.HasField("predict_log"):
                continue
            request = log.predict_log.request
            inputs = {one.key: tf.make_ndarray(one.value) for one in request.inputs}
            signature = request.model_spec.signature_name or _DEFAULT_SIGNATURE
            requests.append((signature, inputs))
    except (tf.errors.OpError, message.DecodeError, ValueError) as error:
        raise ValueError(f"{path} is damaged; export the model again.") from error
    return requests


def prediction_log(signature: str, inputs: dict[str, Any]) -> bytes:
    """Returns a serialized `PredictionLog` of a request.

    Args:
        signature: name of the signature.
        inputs: tensors by name.
    """
    import tensorflow as tf

    log = _message()()
    log.predict_log.request.model_spec.signature_name = signature
    for name, tensor in inputs.items():
        value = tf.make_tensor_proto(tensor)
        log.predict_log.request.inputs.add(key=name, value=value)
    return log.SerializeToString()


@functools.cache
def _message():
    """Returns the class of `PredictionLog`."""
    from google.protobuf import descriptor_pb2
    from google.protobuf import descriptor_pool
    from google.protobuf import message_factory
    from google.protobuf import text_format
    from tensorflow.core.framework import tensor_pb2  # noqa: F401  Registers a message.

    pool = descriptor_pool.Default()
    file = text_format.Parse(_SCHEMA, descriptor_pb2.FileDescriptorProto())
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("bert_tf.PredictionLog")
    )
