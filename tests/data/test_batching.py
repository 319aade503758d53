import ast
import collections

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import ordering
from bert_tf.data import tfrecord


def numbered(num_rows):
    return batching.ArraySource({"row": np.arange(num_rows)})


def rows(source, **arguments):
    batches = batching.training_batches(source, **arguments)
    return [batch["row"].tolist() for batch in batches.as_numpy_iterator()]


def test_the_order_is_what_it_has_always_been():
    # A run that began under another version of NumPy must go on with these rows.
    assert rows(numbered(10), batch_size=10, num_steps=2, seed=1) == [
        [3, 5, 2, 4, 1, 9, 0, 6, 8, 7],
        [6, 1, 2, 9, 5, 0, 4, 3, 8, 7],
    ]


@pytest.mark.parametrize("window", [0, 1])
def test_a_batch_is_a_function_of_seed_and_step(window):
    arguments = {"batch_size": 4, "num_steps": 9, "seed": 7}
    arguments["shuffle_buffer_size"] = window
    whole = rows(numbered(10), **arguments)
    assert rows(numbered(10), start_step=5, **arguments) == whole[5:]
    if window != 1:
        assert rows(numbered(10), **{**arguments, "seed": 8}) != whole


def test_a_buffer_of_one_keeps_the_order():
    batches = rows(
        numbered(3), batch_size=2, num_steps=3, seed=5, shuffle_buffer_size=1
    )
    assert batches == [[0, 1], [2, 0], [1, 2]]


def test_permutations_are_even():
    # 4! orders, 4,800 epochs: 200 of each are expected, with a deviation of 14.
    order = ordering.Order(4, seed=0, window=0)
    found = collections.Counter(
        tuple(order.indices(4 * epoch, 4).tolist()) for epoch in range(4800)
    )
    assert len(found) == 24
    assert all(abs(count - 200) < 5 * 14 for count in found.values())


def test_skipped_batches_are_not_read(golden):
    records = tfrecord.RecordFiles([golden / "default.tfrecord"])
    read, original = [], records.read
    records.read = lambda indices: read.append(len(indices)) or original(indices)
    source = batching.TFRecordSource(records)
    dataset = batching.training_batches(
        source, batch_size=4, num_steps=1000, start_step=998, seed=0
    )
    assert (len(list(dataset)), sum(read)) == (2, 8)


def test_records_arrive_as_they_are_in_the_file(golden):
    path = str(golden / "default.tfrecord")
    source = batching.TFRecordSource(tfrecord.RecordFiles([path]))
    batches = batching.evaluation_batches(source, batch_size=50)
    assert batches.element_spec["input_ids"] == tf.TensorSpec([50, 64], tf.int32)
    weights = tf.float32
    assert batches.element_spec["masked_lm_weights"] == tf.TensorSpec([50, 10], weights)
    found = np.concatenate([batch["input_ids"] for batch in batches])
    assert not found[146:].any()
    for row, record in enumerate(tf.data.TFRecordDataset(path).as_numpy_iterator()):
        feature = tf.train.Example.FromString(record).features.feature
        assert feature["input_ids"].int64_list.value == found[row].tolist()


def test_evaluation_fills_the_last_batch_with_zeros():
    source = batching.ArraySource({"x": np.arange(1, 6), "y": np.ones((5, 2))})
    first, last = batching.evaluation_batches(source, batch_size=3).as_numpy_iterator()
    assert first["x"].tolist() == [1, 2, 3]
    assert last["x"].tolist() == [4, 5, 0]
    assert last["y"].tolist() == [[1, 1], [1, 1], [0, 0]]
    assert last["is_real_example"].tolist() == [1.0, 1.0, 0.0]
    assert last["is_real_example"].dtype == np.float32


@pytest.mark.parametrize(
    "longest, bucket",
    [(1, 4), (4, 4), (5, 6), (7, 10)],  # The whole length is always a bucket.
)
def test_length_buckets_cut_a_batch_to_its_longest_row(longest, bucket):
    mask = np.zeros((2, 10), int)
    mask[0, :longest] = 1
    source = batching.ArraySource(
        {"input_ids": mask * 7, "input_mask": mask, "label_ids": np.arange(2)}
    )
    for dataset in (
        batching.training_batches(
            source, batch_size=2, num_steps=1, seed=0, length_buckets=(6, 4)
        ),
        batching.evaluation_batches(source, batch_size=2, length_buckets=(6, 4)),
    ):
        [batch] = dataset
        assert batch["input_ids"].shape == (2, bucket)
        assert batch["input_mask"].shape == (2, bucket)
        assert batch["label_ids"].shape == (2,)


def test_the_longest_part_of_all_rows_decides_on_the_bucket():
    mask = np.zeros((2, 3, 10), int)
    mask[0, :, :2] = mask[1, :, :3] = mask[1, 2, :5] = 1  # Endings of 2, 3 and 5.
    columns = {"input_ids": mask, "input_mask": mask, "tag_ids": mask[:, 0]}
    source = batching.ArraySource(columns)
    [batch] = batching.evaluation_batches(source, batch_size=2, length_buckets=(4, 6))
    assert batch["input_ids"].shape == (2, 3, 6)
    assert batch["tag_ids"].shape == (2, 6)
    assert source.row_lengths().tolist() == [2, 5]


def test_a_damaged_record_is_a_clear_error(tmp_path, golden):
    data = bytearray((golden / "default.tfrecord").read_bytes())
    data[-20] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(data)
    source = batching.TFRecordSource(tfrecord.RecordFiles([path]))
    with pytest.raises(ValueError, match=r"a.tfrecord: the record at byte \d+ is dam"):
        with batching.clear_errors():
            list(batching.evaluation_batches(source, batch_size=8))
    data[100] ^= 1
    path.write_bytes(data)
    # The first record is read at opening, for its columns.
    with pytest.raises(ValueError, match=r"a.tfrecord: the record at byte 0 is dam"):
        tfrecord.RecordFiles([path])


def test_a_record_of_another_length_is_a_clear_error(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for length in (3, 4):
            example = tf.train.Example()
            example.features.feature["x"].int64_list.value.extend([1] * length)
            writer.write(example.SerializeToString())
    source = batching.TFRecordSource(tfrecord.RecordFiles([path]))
    with pytest.raises(ValueError, match="different columns or lengths from the first"):
        with batching.clear_errors():
            list(batching.evaluation_batches(source, batch_size=2))


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"x": np.arange(2), "y": np.arange(3)}, "the same number of rows"),
        ({"x": np.zeros((0, 3))}, "at least one"),
        ({"x": np.array(["a"])}, "Column x: expected numbers"),
        ({"x": np.zeros((1, 2, 3, 4))}, "Column x: expected numbers of shape"),
    ],
)
def test_arrays_that_are_no_rows_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        batching.ArraySource(columns)


def test_python_functions_of_input_pipelines_are_declared_stateless(project_root):
    # A stateful one would make TensorFlow run the whole pipeline in series if
    # operations are deterministic.
    stateful = [
        f"{path.name}:{node.lineno}"
        for path in (project_root / "bert_tf").rglob("*.py")
        if "serving" not in path.parts  # Answers, not an input pipeline.
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and "numpy_function" in ast.unparse(node.func)
        if "stateful=False" not in ast.unparse(node)
    ]
    assert not stateful


def sorted_at_once(num_rows, *, seed, epoch, window):
    """Returns an epoch by its definition: windows by their hash, rows by theirs."""
    key = ordering.mix(ordering.mix(np.uint64(seed)) + np.uint64(epoch))
    rows = np.arange(num_rows, dtype=np.uint64)
    windows = ordering.mix(~key + rows // np.uint64(window or num_rows))
    return np.lexsort((ordering.mix(key + rows), windows))


@pytest.mark.parametrize(
    "window",
    [
        0,  # 16 parts of hashes.
        7,  # The last window has 6 of the 1,000 rows.
        1000,  # One window.
    ],
)
def test_an_epoch_in_parts_is_the_one_sorted_at_once(monkeypatch, window):
    monkeypatch.setattr(ordering, "_ROWS_PER_PART", 80)
    monkeypatch.setattr(ordering, "_ROWS_PER_BLOCK", 64)
    order = ordering.Order(1000, seed=3, window=window)
    expected = np.concatenate(
        [sorted_at_once(1000, seed=3, epoch=e, window=window) for e in range(3)]
    )
    for position, count in [(0, 3000), (990, 20), (1500, 1), (5, 0)]:
        found = order.indices(position, count)
        assert found.tolist() == expected[position : position + count].tolist()


def test_a_large_epoch_is_never_in_memory_as_a_whole(monkeypatch):
    monkeypatch.setattr(ordering, "_ROWS_PER_PART", 1000)
    monkeypatch.setattr(ordering, "_ROWS_PER_BLOCK", 512)
    sizes = []
    argsort = np.argsort
    monkeypatch.setattr(
        np, "argsort", lambda a, **k: sizes.append(len(a)) or argsort(a, **k)
    )
    order = ordering.Order(100_000, seed=0, window=0)
    assert len(set(order.indices(40_000, 5_000).tolist())) == 5_000
    # 5,000 positions are in at most 9 parts.
    assert len(sizes) <= 9
    assert max(sizes) < 1200


def test_the_windows_of_a_pool_are_shuffled_together():
    order = ordering.Order(100, seed=5, window=10, windows_per_pool=4)
    pools = [order.indices(start, 40) for start in (0, 40)] + [order.indices(80, 20)]
    assert sorted(np.concatenate(pools).tolist()) == list(range(100))
    for start, pool in zip((0, 40, 80), pools, strict=True):
        windows = set((pool // 10).tolist())
        assert len(windows) == len(pool) // 10
        assert windows == {rows.start // 10 for rows in order.ranges(start, 1)}
        # The rows of a window do not follow each other.
        assert len(set((pool[:10] // 10).tolist())) > 1
