import pathlib

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import encoding as data_encoding
from bert_tf.data import schema as schema_module

SCHEMA = schema_module.Schema(
    columns=(
        schema_module.Column(name="ids", length=40, dtype="int32"),
        schema_module.Column(name="weights", length=2, dtype="float32"),
        schema_module.Column(name="label", length=None, dtype="int32"),
    )
)


# Each in turn the largest number of a column: one to nine bytes, looked up or computed.
@pytest.mark.parametrize("most", [0, 127, 128, 16383, 16384, 2**18 - 1, 2**18, 2**62])
@pytest.mark.parametrize("rows_differ", [True, False])
def test_tensorflow_reads_numbers_of_every_size(tmp_path, most, rows_differ):
    numbers = np.random.default_rng(most % 1000)
    ids = most >> numbers.integers(0, 63, (20, 40))
    ids[:, 0] = most
    if not rows_differ:
        ids[:] = ids[0]
    weights = numbers.random((20, 2)).astype(np.float32)
    columns = {"ids": ids, "weights": weights, "label": np.arange(20)}
    data, sizes = data_encoding.framed_records(SCHEMA, columns)
    path = tmp_path / "x.tfrecord"
    path.write_bytes(data)
    # It checks the checksums, too.
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert [len(record) + 16 for record in records] == sizes.tolist()
    for row, record in enumerate(records):
        feature = tf.train.Example.FromString(record).features.feature
        assert feature["ids"].int64_list.value == ids[row].tolist()
        assert feature["label"].int64_list.value == [row]
        assert feature["weights"].float_list.value == weights[row].tolist()


def test_decode_reads_what_tensorflow_writes():
    example = tf.train.Example()
    example.features.feature["ids"].int64_list.value.extend([0, 127, 128, 30522, -1])
    example.features.feature["weights"].float_list.value.extend([0.5, 1.5])
    decoded = data_encoding.decode(example.SerializeToString())
    assert decoded["ids"].tolist() == [0, 127, 128, 30522, -1]
    assert decoded["weights"].tolist() == [0.5, 1.5]


@pytest.mark.parametrize("record", [b"\x0a\x05ab", b"\x80", b"\x08\x01"])
def test_decode_refuses_other_bytes(record):
    with pytest.raises(ValueError, match=r"not a tf.train.Example of numbers"):
        data_encoding.decode(record)


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"ids": np.array([[0, -3]])}, "no negative integers, got -3"),
        ({"ids": np.zeros((1, 3))}, r"Column ids: expected .*\(1, 2\), got"),
        ({"other": np.zeros((1, 2))}, "Expected the columns ids, got other"),
    ],
)
def test_rows_of_another_form_are_refused(columns, message):
    column = schema_module.Column(name="ids", length=2, dtype="int32")
    schema = schema_module.Schema(columns=(column,))
    with pytest.raises(ValueError, match=message):
        data_encoding.framed_records(schema, columns)


@pytest.mark.parametrize("size", [0, 1, 300])
def test_the_frame_of_a_record_is_that_of_tensorflow(tmp_path, size):
    record = bytes(range(256)) * 2
    path = str(tmp_path / "x.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(record[:size])
    framed = pathlib.Path(path).read_bytes()
    assert framed.startswith(data_encoding.header(size))
    assert data_encoding.payload(framed) == record[:size]
    for place in range(len(framed)):
        damaged = bytearray(framed)
        damaged[place] ^= 1
        assert data_encoding.payload(bytes(damaged)) is None
    assert data_encoding.payload(framed[:-1]) is None
