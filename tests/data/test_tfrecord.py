import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import encoding as data_encoding
from bert_tf.data import record_checks
from bert_tf.data import record_index
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.tokenization import vocabulary as vocabulary_module

VOCABULARY = vocabulary_module.Vocabulary(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
)
SCHEMA = schema_module.pretraining(8, 2)
METADATA = {
    "vocab_fingerprint": "f00",
    "vocab_file": "v.txt",
    "vocab_size": 30,
}


def columns(num_rows, first=0):
    rows = np.arange(first, first + num_rows)[:, None]
    zeros = np.zeros((num_rows, 8), np.int32)
    return {
        "input_ids": zeros + rows,
        "input_mask": zeros + 1,
        "segment_ids": zeros,
        "masked_lm_positions": np.tile([1, 2], (num_rows, 1)),
        "masked_lm_ids": np.tile([5, 20], (num_rows, 1)),
        "masked_lm_weights": np.ones((num_rows, 2), np.float32),
        "next_sentence_labels": rows % 2,
    }


def write(path, num_rows=7, first=0, metadata=METADATA):
    with tfrecord.Writer(path, SCHEMA, metadata=metadata) as writer:
        writer.write(columns(num_rows, first))
    return str(path)


def remove_side_file(path):
    (path.parent / (path.name + ".index.npz")).unlink()


def test_records_of_several_files_are_one_list(tmp_path):
    paths = [write(tmp_path / "a", 3), write(tmp_path / "b", 4, first=3)]
    records = tfrecord.RecordFiles(paths)
    assert records.num_records == 7
    assert records.metadata == METADATA
    assert records.schema == SCHEMA
    read = records.read([6, 0, 3, 2])
    found = [tf.train.Example.FromString(r).features.feature["input_ids"] for r in read]
    assert [ids.int64_list.value[0] for ids in found] == [6, 0, 3, 2]


def test_without_a_side_file_the_records_are_found_and_no_side_file_is_written(
    tmp_path,
):
    path = tmp_path / "a"
    write(path)
    with_side_file = tfrecord.RecordFiles([path])
    remove_side_file(path)
    scanned = tfrecord.RecordFiles([path])
    assert scanned.num_records == 7
    assert scanned.metadata == {}
    assert set(scanned.schema.columns) == set(SCHEMA.columns)
    assert scanned.read(range(7)) == with_side_file.read(range(7))
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_a_side_file_is_what_numpy_reads(tmp_path):
    write(tmp_path / "a", 1)
    write(tmp_path / "b", 3)
    size = (tmp_path / "a").stat().st_size
    with np.load(tmp_path / "b.index.npz") as arrays:
        assert sorted(arrays) == ["description", "offsets"]
        assert arrays["offsets"].dtype == np.int64
        assert arrays["offsets"].tolist() == [0, size, 2 * size, 3 * size]


@pytest.mark.parametrize("bytes_left", [1, 11, 12, 13, None])
def test_a_truncated_file_is_refused(tmp_path, bytes_left):
    path = tmp_path / "a"
    write(path)
    start, end = record_index.load_or_scan(str(path)).offsets[-2:].tolist()
    stop = start + bytes_left if bytes_left else end - 1
    path.write_bytes(path.read_bytes()[:stop])
    with pytest.raises(ValueError, match=f"written with {end}. The records are trunc"):
        tfrecord.RecordFiles([path])
    remove_side_file(path)
    with pytest.raises(ValueError, match=f"truncated: the record at byte {start} "):
        tfrecord.RecordFiles([path])


def test_a_damaged_length_is_refused(tmp_path):
    path = tmp_path / "a"
    write(path)
    remove_side_file(path)
    data = bytearray(path.read_bytes())
    second = (len(data)) // 7
    data[second + 3] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"/a: expected a TFRecord at byte {second}, "):
        tfrecord.RecordFiles([path])


def test_a_damaged_record_is_refused_when_it_is_read(tmp_path):
    path = tmp_path / "a"
    write(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 7 + 40] ^= 1
    path.write_bytes(data)
    records = tfrecord.RecordFiles([path])
    records.read([0, 2])
    with pytest.raises(ValueError, match=r"/a: the record at byte .* is damaged"):
        records.read([0, 1])


def test_a_file_without_records_is_refused(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(ValueError, match=r"There are no records in .*/a\."):
        tfrecord.RecordFiles([tmp_path / "a"])


def test_records_that_are_no_examples_are_refused(tmp_path):
    path = str(tmp_path / "a")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"hello")
    with pytest.raises(ValueError, match=r"a: the record at byte 0 is not a tf.train"):
        tfrecord.RecordFiles([path])


def test_files_with_other_columns_are_refused(tmp_path, golden):
    path = write(tmp_path / "a")
    with pytest.raises(ValueError, match=r"has the columns .*, but .*/a has"):
        tfrecord.RecordFiles([path, golden / "default.tfrecord"])


def test_files_of_two_vocabularies_are_refused(tmp_path):
    other = {**METADATA, "vocab_fingerprint": "ba2"}
    paths = [write(tmp_path / "a"), write(tmp_path / "b", metadata=other)]
    with pytest.raises(ValueError, match="written with a different vocabulary than"):
        tfrecord.RecordFiles(paths)


def test_files_of_two_casings_are_refused(tmp_path):
    lowered, cased, unknown = (
        write(tmp_path / str(casing), metadata={**METADATA, "do_lower_case": casing})
        for casing in (True, False, None)
    )
    for paths in ([lowered, unknown], [unknown, lowered]):
        assert tfrecord.RecordFiles(paths).metadata["do_lower_case"] is True
    for paths in ([lowered, cased], [unknown, lowered, cased]):
        with pytest.raises(ValueError, match=r"--do_lower_case=False, but .* True"):
            tfrecord.RecordFiles(paths)


@pytest.mark.parametrize(
    "expected, message",
    [
        ({"max_seq_length": 16}, "max_seq_length 8, expected 16; pass --max_seq_len"),
        ({"max_predictions_per_seq": 3}, "max_predictions_per_seq 2, expected 3"),
        ({"vocab_size": 29}, "a vocabulary of 30 pieces, expected at most 29"),
        ({"vocabulary": VOCABULARY}, r"vocabulary \(v.txt, 30 pieces\) than .* \(5 "),
    ],
)
def test_check_says_what_the_records_were_written_with(tmp_path, expected, message):
    records = tfrecord.RecordFiles([write(tmp_path / "a")])
    with pytest.raises(ValueError, match=message):
        record_checks.check(records, **expected)


def write_examples(path, *changes):
    """Writes Examples as the release writes them, of 4 positions and 1 masked one."""
    columns = {
        "input_ids": [7, 20, 8, 0],
        "input_mask": [1, 1, 1, 0],
        "segment_ids": [0, 0, 1, 0],
        "masked_lm_positions": [1],
        "masked_lm_ids": [20],
        "masked_lm_weights": [1.0],
        "next_sentence_labels": [1],
    }
    with tf.io.TFRecordWriter(str(path)) as writer:
        for changed in changes:
            example = tf.train.Example()
            for name, values in (columns | changed).items():
                kind = "float" if name == "masked_lm_weights" else "int64"
                feature = example.features.feature[name]
                getattr(feature, f"{kind}_list").value.extend(values)
            writer.write(example.SerializeToString())
    return tfrecord.RecordFiles([path])


@pytest.mark.parametrize(
    "column, values, message",
    [
        ("input_ids", [7, -1, 8, 0], "has input_ids -1, expected 0 to 29"),
        ("input_ids", [7, 2**32, 8, 0], "has input_ids 4294967296, expected 0 to 29"),
        ("input_ids", [7, 30, 8, 0], "has input_ids 30, expected 0 to 29"),
        ("input_mask", [1, 1, 2, 0], "has input_mask 2, expected 0 to 1"),
        ("input_mask", [0, 0, 0, 0], "has an empty input_mask"),
        ("segment_ids", [0, 0, 9, 0], "has segment_ids 9, expected 0 to 1"),
        ("masked_lm_positions", [4], "has masked_lm_positions 4, expected 0 to 3"),
        ("masked_lm_ids", [30], "has masked_lm_ids 30, expected 0 to 29"),
        ("masked_lm_weights", [-1.0], r"has masked_lm_weights -1\.0, expected 0 to 1"),
        ("masked_lm_weights", [np.nan], "has masked_lm_weights nan, expected 0 to 1"),
        ("next_sentence_labels", [2], "has next_sentence_labels 2, expected 0 to 1"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_record(
    tmp_path, column, values, message
):
    sound = write_examples(tmp_path / "a", {}, {}, {})
    model = {"vocab_size": 30, "type_vocab_size": 2, "max_position_embeddings": 4}
    record_checks.check(sound, **model)
    wrong = write_examples(tmp_path / "b", {}, {}, {column: values})
    place = rf"/b: record 3 \(at byte \d+\) {message}"
    with pytest.raises(ValueError, match=place):
        record_checks.check(tfrecord.RecordFiles(sound.paths + wrong.paths), **model)


def test_packed_rows_have_their_own_limits(tmp_path):
    packed = {"sequence_ids": [1, 1, 2, 0], "cls_positions": [0, 2]}
    packed |= {"position_ids": [0, 1, 2, 0], "next_sentence_labels": [0, 1]}
    records = write_examples(tmp_path / "a", packed)
    record_checks.check(records, max_position_embeddings=3)
    with pytest.raises(ValueError, match="has position_ids 2, expected 0 to 1"):
        record_checks.check(records, max_position_embeddings=2)


def test_records_without_a_side_file_have_no_known_vocabulary(golden, caplog):
    records = tfrecord.RecordFiles([golden / "default.tfrecord"])
    record_checks.check(
        records, vocabulary=vocabulary_module.Vocabulary.load(golden / "vocab.txt")
    )
    [warning] = caplog.messages
    assert "has no side file" in warning
    assert "not known whether it was written with this vocabulary" in warning


def test_a_file_that_is_no_side_file_is_refused(tmp_path):
    path = write(tmp_path / "a")
    (tmp_path / "a.index.npz").write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"a.index.npz: not a side file"):
        tfrecord.RecordFiles([path])


@pytest.mark.parametrize("changes", [{"dtype": "string"}, {"name": "segment_ids"}])
def test_a_side_file_with_other_types_or_a_column_twice_is_refused(tmp_path, changes):
    path = write(tmp_path / "a")
    first, *others = SCHEMA.columns
    columns = (dataclasses.replace(first, **changes), *others)
    sizes = np.diff(record_index.load_or_scan(path).offsets)
    record_index.save(path, sizes, schema_module.Schema(columns=columns), METADATA)
    with pytest.raises(ValueError, match=r"a.index.npz: not a side file"):
        tfrecord.RecordFiles([path])


@pytest.mark.parametrize(
    "num_records, expected",
    [
        (2, np.uint32),
        (3, np.int64),  # The last offset exceeds 32 bits.
    ],
)
def test_the_index_of_a_file_below_4_gib_takes_4_bytes_per_record(
    tmp_path, monkeypatch, num_records, expected
):
    path, size = tmp_path / "a", 2**32 // 3 + 1
    path.touch()
    monkeypatch.setattr(record_index.files, "size", lambda path: num_records * size)
    record_index.save(str(path), np.full(num_records, size), SCHEMA, METADATA)
    offsets = record_index.load_or_scan(str(path)).offsets
    assert offsets.dtype == expected
    assert offsets.tolist() == [index * size for index in range(num_records + 1)]


SMALL = schema_module.Schema(
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
    data, sizes = data_encoding.framed_records(SMALL, columns)
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
