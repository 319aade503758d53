"""Part of learning_per_minute: converts records to arrays that every peer can read."""

import json
import sys

import numpy as np

from bert_tf.data import batching
from bert_tf.data import tfrecord


def main():
    """Reads task.json and writes arrays.npz."""
    with open(sys.argv[1], encoding="utf-8") as file:
        task = json.load(file)
    train = columns(task["train_records"])
    heldout = columns(task["heldout_records"], task["max_heldout_rows"])
    # 16 bits are enough for every id.
    arrays = {"train_ids": train["input_ids"].astype(np.uint16)}
    names = ("input_ids", "input_mask", "segment_ids")
    masked = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    arrays |= {f"heldout_{name}": heldout[name] for name in (*names, *masked)}
    np.savez(task["arrays"], **arrays)
    print(
        f"{len(train['input_ids'])} training rows, "
        f"{len(heldout['input_ids'])} held-out rows"
    )


def columns(path, max_rows=None):
    """Returns {name: array} of a TFRecord file."""
    source = batching.TFRecordSource(tfrecord.RecordFiles([path]))
    parts = [
        {name: column.numpy() for name, column in batch.items()}
        for batch in source.evaluation_batches(batch_size=1024)
    ]
    num_rows = min(source.num_examples, max_rows or source.num_examples)
    return {
        name: np.concatenate([part[name] for part in parts])[:num_rows]
        for name in parts[0]
    }


if __name__ == "__main__":
    main()
