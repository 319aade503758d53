"""Records of an object store: few requests, the same batches after a restart."""

import numpy as np
import pytest

from bert_tf import files
from bert_tf.data import batching
from bert_tf.data import record_checks
from bert_tf.data import record_index
from bert_tf.data import remote_blocks
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from tests import ring
from tests.data import store_double

SEQ_LENGTH = 128
BATCH_SIZE = 256
NUM_RECORDS = 20_000
SCHEMA = schema_module.pretraining(SEQ_LENGTH, 20)


def write(path, numbers):
    """Writes records of 128 pieces, the first of which is the record's number."""
    size = len(numbers)
    draws = np.random.default_rng(0)
    columns = {
        column.name: np.ones((size, column.length) if column.length else size, int)
        for column in SCHEMA.columns
    }
    columns["input_ids"] = draws.integers(200, 30_000, (size, SEQ_LENGTH))
    columns["input_ids"][:, 0] = numbers
    with tfrecord.Writer(path, SCHEMA, metadata={"vocab_size": 30_000}) as writer:
        writer.write(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    for number, rows in enumerate(np.array_split(np.arange(NUM_RECORDS), 3)):
        write(str(folder / f"part-{number}"), rows)
    return folder


@pytest.fixture
def store(folder, monkeypatch):
    store = store_double.ObjectStore(folder)
    monkeypatch.setattr(files, "_gfile", lambda: store)
    # Pools of 4 blocks of about 700 records.
    monkeypatch.setattr(remote_blocks, "BLOCK_BYTES", 1 << 19)
    monkeypatch.setattr(remote_blocks, "BLOCKS_PER_POOL", 4)
    return store


def opened():
    return tfrecord.RecordFiles(files.expand("store://part-*"))


def numbers(source, **arguments):
    """Returns the numbers of the records of each batch."""
    arguments = {"batch_size": BATCH_SIZE, "seed": 7} | arguments
    batches = batching.training_batches(source, **arguments)
    return [batch["input_ids"][:, 0].tolist() for batch in batches.as_numpy_iterator()]


@pytest.mark.parametrize(
    "shuffle_buffer_size",
    [
        0,  # Pools of random blocks.
        ring.slow(1),  # In order.
    ],
)
@pytest.mark.parametrize("hosts", [ring.slow(1), 8])
def test_a_batch_costs_few_requests_and_every_record_is_read_once(
    store, shuffle_buffer_size, hosts
):
    num_steps = NUM_RECORDS // BATCH_SIZE
    size = BATCH_SIZE // hosts
    sources = [batching.TFRecordSource(opened()) for _ in range(hosts)]
    with store.counted() as requests:
        shares = [
            numbers(
                source,
                num_steps=num_steps,
                shuffle_buffer_size=shuffle_buffer_size,
                share=range(host * size, (host + 1) * size),
            )
            for host, source in enumerate(sources)
        ]
    seen = np.concatenate(shares, axis=1).ravel()
    assert len(seen) == len(set(seen)) == num_steps * BATCH_SIZE
    assert len(requests) <= 8 * num_steps * hosts
    # What is read ahead at the end is the only overhead.
    assert store.num_bytes < 1.5 * hosts * sources[0]._record_files.num_bytes + (
        hosts * 4 * remote_blocks.BLOCK_BYTES * remote_blocks.BLOCKS_PER_POOL
    )


@pytest.mark.parametrize("shuffle_buffer_size", [0, ring.slow(1)])
def test_a_resumed_run_reads_the_same_batches_but_not_those_before(
    store, shuffle_buffer_size
):
    arguments = {"num_steps": 160, "shuffle_buffer_size": shuffle_buffer_size}
    whole = numbers(batching.TFRecordSource(opened()), **arguments)
    # 78 steps are an epoch: batch 78 has the end of one and the start of the next.
    source = batching.TFRecordSource(opened())
    with store.counted() as requests:
        assert numbers(source, **arguments, start_step=157) == whole[157:]
    assert len(requests) < 40
    shares = [
        numbers(batching.TFRecordSource(opened()), **arguments, share=share)
        for share in (range(100), range(100, BATCH_SIZE))
    ]
    assert np.concatenate(shares, axis=1).tolist() == whole
    # The last of eight hosts, after the same restart.
    source = batching.TFRecordSource(opened())
    share = range(BATCH_SIZE * 7 // 8, BATCH_SIZE)
    assert numbers(source, **arguments, share=share, start_step=157) == [
        batch[share.start :] for batch in whole[157:]
    ]


@pytest.mark.parametrize("window, is_in_blocks", [(0, True), (1, False)])
def test_only_the_default_order_differs_from_that_of_local_files(
    store, folder, window, is_in_blocks
):
    local = tfrecord.RecordFiles(files.expand(str(folder / "part-?")))
    assert remote_blocks.order_of(local, window) is None
    found = remote_blocks.order_of(opened(), window)
    assert found == (f"4 blocks of {opened_block_size()}" if is_in_blocks else None)


def test_a_batch_mixes_records_of_random_places(store):
    [first] = numbers(batching.TFRecordSource(opened()), num_steps=1)
    # 4 blocks of the 30 or so, and the share of each that chance allows.
    blocks = np.unique(np.array(first) // opened_block_size(), return_counts=True)[1]
    assert len(blocks) == 4
    assert min(blocks) > 30


def opened_block_size():
    return remote_blocks.BlockReader(opened()).rows_per_block


def test_evaluation_reads_each_block_once(store):
    source = batching.TFRecordSource(opened())
    with store.counted() as requests:
        batches = batching.evaluation_batches(source, batch_size=BATCH_SIZE)
        seen = np.concatenate([b["input_ids"][:, 0] for b in batches])
    assert seen[:NUM_RECORDS].tolist() == list(range(NUM_RECORDS))
    assert len(requests) < 4 * NUM_RECORDS / opened_block_size() + 6


def test_opening_and_checking_files_takes_few_requests(store):
    with store.counted() as requests:
        record_checks.check(opened(), max_seq_length=SEQ_LENGTH, vocab_size=30_000)
    assert len(requests) < 100


def test_a_remote_file_without_side_file_is_scanned_in_blocks(store, folder, tmp_path):
    store._folder = str(tmp_path)
    data = b"".join((folder / f"part-{n}").read_bytes() for n in range(3))
    (tmp_path / "a").write_bytes(data)
    with store.counted() as requests:
        found = record_index.load_or_scan("store://a").offsets
    local = [record_index.load_or_scan(str(folder / f"part-{n}")) for n in range(3)]
    sizes = np.concatenate([np.diff(index.offsets) for index in local])
    assert np.diff(found).tolist() == sizes.tolist()
    # Each piece is read, and the scan seeks over the record at its end.
    assert len(requests) < 2 * len(data) / store_double.PIECE_BYTES + 20


def test_a_read_that_failed_is_tried_again(store, monkeypatch):
    source = batching.TFRecordSource(opened())
    read_range, failed = files.read_range, []

    def fails_once(path, start, count):
        if not failed:
            failed.append(path)
            raise OSError(f"{path}: the connection was lost.")
        return read_range(path, start, count)

    monkeypatch.setattr(files, "read_range", fails_once)
    with (
        pytest.raises(ValueError, match=r"store://part-.: the connection was lost"),
        batching.clear_errors(),
    ):
        numbers(source, num_steps=1)
    assert len(numbers(source, num_steps=1)[0]) == BATCH_SIZE
