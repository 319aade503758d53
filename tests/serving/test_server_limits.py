import numpy as np
import pytest
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from bert_tf.serving import saved_signatures
from bert_tf.serving import server_limits

LIMITS = server_limits.ServerLimits(max_rows=4, max_padded_bytes=20)


def signature(*output_shape):
    definition = meta_graph_pb2.SignatureDef()
    text, output = definition.inputs["text"], definition.outputs["output"]
    text.dtype = output.dtype = types_pb2.DT_STRING
    text.tensor_shape.dim.add(size=-1)
    for size in output_shape:
        output.tensor_shape.dim.add(size=size)
    return saved_signatures.Signature(name="serving_default", definition=definition)


def texts(*values):
    return {"text": np.array(values, object)}


def test_rows_are_limited_and_every_ending_is_one():
    LIMITS.check(signature(-1, 3), texts(*"abcd"))
    with pytest.raises(ValueError, match="at most 4 rows, got 5"):
        LIMITS.check(signature(-1, 3), texts(*"abcde"))
    endings = {"endings": np.full([2, 3], "a", object)}
    with pytest.raises(ValueError, match="at most 4 rows, got 6"):
        LIMITS.check(signature(-1, 3), texts(*"ab") | endings)


def test_answers_that_are_padded_are_limited():
    long = texts("é" * 5, b"a", "b")
    LIMITS.check(signature(-1, 3), long)
    LIMITS.check(signature(-1, -1), texts("é" * 5, "a"))
    LIMITS.check(signature(-1, -1), texts())
    with pytest.raises(ValueError, match="of at most 20, got 3 x 10; send long texts"):
        LIMITS.check(signature(-1, -1), long)
