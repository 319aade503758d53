"""Pretraining examples from raw text, without records: what run_pretraining reads.

The examples are those of `pretraining_data.text_dataset`. Batch after batch takes the
next ones, so the batch of a step is a function of (seed, step), as with records.

Each worker reads all of the text and draws all pairs, but creates and masks only the
rows of its own share of each batch.
"""

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bert_tf import files
from bert_tf import options as options_module
from bert_tf.data import batching
from bert_tf.data import corpus as data_corpus
from bert_tf.data import schema as schema_module
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining_data import graph_pools
from bert_tf.tokenization import vocabulary as vocabulary_module

# Beside the run: how many examples each pool has, which depends on the pairs drawn.
COUNTS_FILE = "text_examples.json"
_ADVICE = "remove it; it will be computed again"

# The epoch that evaluation draws its examples for: always the same, never training's.
_EVALUATION_EPOCH = 2**40


def no_vocabulary(paths: Sequence[str]) -> options_module.OptionError:
    """Returns the error for text without a vocabulary."""
    return options_module.OptionError(
        f"{paths[0]} contains text, so --vocab_file is needed, or an --init_checkpoint "
        "with a vocabulary."
    )


class TextExamples:
    """The examples of text files. Stands in for `tfrecord.RecordFiles`.

    Attributes:
        paths: the files, in UTF-8.
        vocabulary: the vocabulary.
        schema: the columns of an example.
        metadata: as in the side file of records.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not UTF-8, there is no text, or only one document although
            pairs need two; or the vocabulary has no [MASK].
    """

    def __init__(
        self,
        paths: list[str],
        options: pretraining_options.RunPretrainingOptions,
        vocabulary: vocabulary_module.Vocabulary,
        *,
        do_lower_case: bool,
    ):
        vocabulary.check_has_mask()
        data_corpus.check_utf8(paths)
        self.paths = paths
        self.vocabulary = vocabulary
        self.schema = schema_module.pretraining(
            options.max_seq_length,
            options.max_predictions_per_seq,
            options.next_sentence,
        )
        self.metadata = {
            "do_lower_case": do_lower_case,
            "vocab_fingerprint": vocabulary.fingerprint,
            "vocab_size": len(vocabulary),
        }
        self._pools = graph_pools.TextPools(
            paths, options, vocabulary, do_lower_case=do_lower_case
        )
        self._key = json.dumps(
            {
                **self.metadata,
                "max_seq_length": options.max_seq_length,
                "next_sentence": options.next_sentence,
                "short_seq_prob": options.short_seq_prob,
                "random_seed": options.random_seed,
            },
            sort_keys=True,
        )
        self._evaluation = TextSource(
            self._pools,
            self.schema,
            first_pool=_EVALUATION_EPOCH * self._pools.num_pools,
        )

    def training_source(
        self, folder: str, checksum: str | None, *, is_written: bool
    ) -> "TextSource":
        """Returns the source that training reads.

        Args:
            folder: the run's folder, which keeps the numbers of examples.
            checksum: identifies the text.
            is_written: whether this process writes to the folder.
        """
        return TextSource(
            self._pools,
            self.schema,
            counts_file=os.path.join(folder, COUNTS_FILE),
            key=f"{checksum} {self._key}",
            is_written=is_written,
        )

    def evaluation_source(self, max_examples: int | None = None) -> "TextSource":
        """Returns the source of evaluation: the text once, always the same.

        `max_examples` is a number of examples that suffices; None: all.
        """
        self._evaluation.max_examples = max_examples
        return self._evaluation


class TextSource(batching.Source):
    """The rows of the pools of a text, one after another.

    The number of rows of a pool is only known once it was sampled. A run records the
    numbers in a file, which only saves time: missing numbers are computed again.

    Args:
        pools: the pools.
        schema: the columns.
        first_pool: number of the first pool.
        counts_file: path of the file; None: nothing is recorded.
        key: identifies the text, the settings and the seed. Recorded numbers with a
            different key are not used.
        is_written: False: the file is only read, as on all workers but the chief.

    Attributes:
        max_examples: a number of examples that suffices for evaluation; None: all.

    Raises:
        OSError, ValueError: the file cannot be read, or is damaged.
    """

    def __init__(
        self,
        pools: graph_pools.TextPools,
        schema: schema_module.Schema,
        *,
        first_pool: int = 0,
        counts_file: str | None = None,
        key: str = "",
        is_written: bool = False,
    ):
        self.columns = schema.columns
        self.max_examples: int | None = None
        self._pools = pools
        self._first_pool = first_pool
        self._path, self._key, self._is_written = counts_file, key, is_written
        self._lock = threading.Lock()
        self._counts: list[int] = []  # Rows of each pool from the first one on.
        if counts_file is not None and files.exists(counts_file):
            shape = {"num_examples": [int]}
            recorded = files.read_json(counts_file, advice=_ADVICE, shape=shape)
            if recorded.get("key") == key:
                self._counts = recorded["num_examples"]

    @property
    def num_examples(self) -> int:  # type: ignore[override]
        """Number of examples of an epoch, or one that suffices for evaluation."""
        total = 0
        for index in range(self._pools.num_pools):
            if self.max_examples is not None and total >= self.max_examples:
                break
            total += self._count(index)
        return total

    def _find(self, row):
        """Returns the number of the pool with a row, and the index of its first row."""
        rows_before, index = 0, 0
        while rows_before < row and rows_before + self._count(index) <= row:
            rows_before += self._count(index)
            index += 1
        return self._first_pool + index, rows_before

    def _count(self, index):
        if index == len(self._counts):
            number = self._first_pool + index
            with self.clear_errors():
                self._record(number, self._pools.count(number))
        return self._counts[index]

    def _record(self, number, count):
        """Records the number of rows of a pool that was sampled."""
        with self._lock:
            if number - self._first_pool != len(self._counts):
                return
            self._counts.append(count)
            if self._path is not None and self._is_written:
                with files.complete_or_absent(self._path) as file:
                    json.dump({"key": self._key, "num_examples": self._counts}, file)

    @tf.autograph.experimental.do_not_convert  # Converting takes time and is useless.
    def training_batches(
        self,
        *,
        batch_size: int,
        num_steps: int,
        start_step: int = 0,
        share: range | None = None,
        **others: Any,
    ) -> tf.data.Dataset:
        """Returns the batches of some steps, as `batching.training_batches` does.

        Raises:
            ValueError: another argument is not as text has it: the order is that of the
                pools, and all rows have one length.
        """
        expected: dict[str, Any] = {"seed": self._pools.seed, "shuffle_buffer_size": 0}
        expected["length_buckets"] = ()
        if expected | others != expected:
            raise ValueError(f"Batches of text: expected {expected}, got {others}.")
        share = share or range(batch_size)
        first_row = start_step * batch_size
        number, rows_before = self._find(first_row)

        def rows_of(rows_before, pool):
            index = rows_before + tf.range(tf.size(pool.pairs.start_a, tf.int64))
            position = index % batch_size
            is_read = (position >= share.start) & (position < share.stop)
            chosen = tf.where(is_read & (index >= first_row))[:, 0]
            return self._pools.blocks(pool, chosen)

        def with_step(step, features):
            features["example_index"] = tf.range(share.start, share.stop)
            features["step"] = tf.fill([len(share)], tf.cast(step, tf.int32))
            return features

        pools = self._pools.pools(number, tf.int64.max)
        pools = pools.map(self._recorded).scan(
            tf.constant(rows_before, tf.int64),
            lambda before, pool: (
                before + tf.size(pool.pairs.start_a, tf.int64),
                (before, pool),
            ),
        )
        batches = pools.flat_map(rows_of).rebatch(len(share), drop_remainder=True)
        batches = batches.enumerate(start_step).map(with_step)
        return batching.prepared(batches.take(num_steps - start_step))

    @tf.autograph.experimental.do_not_convert
    def evaluation_batches(
        self, *, batch_size: int, length_buckets: Sequence[int] = ()
    ) -> tf.data.Dataset:
        """Returns the text once, as `batching.evaluation_batches` does."""

        def completed(features):
            size = tf.shape(features["input_ids"])[0]
            features["is_real_example"] = tf.ones([size])
            return {
                name: _padded(values, batch_size) for name, values in features.items()
            }

        first = self._first_pool
        pools = self._pools.pools(first, first + self._pools.num_pools)
        blocks = pools.map(self._recorded).flat_map(self._pools.blocks)
        batches = blocks.rebatch(batch_size).map(completed)
        return batching.prepared(batches, length_buckets=length_buckets)

    @contextlib.contextmanager
    def clear_errors(self) -> Iterator[None]:
        """See `batching.clear_errors`; also if a file was changed or removed."""
        try:
            with batching.clear_errors():
                yield
        except tf.errors.OpError:  # The reason may be that a file is not the same.
            self._pools.unchanged.check()
            raise

    def _recorded(self, pool):
        """Returns a pool whose text is still the same, after recording its rows."""

        def record(number, count):
            self._pools.unchanged.check()
            self._record(int(number), int(count))
            return number

        count = tf.size(pool.pairs.start_a, tf.int64)
        # Recording a pool again changes nothing; see `batching.Source.rows`.
        arguments = [pool.number, count]
        number = tf.numpy_function(record, arguments, tf.int64, stateful=False)
        return pool._replace(number=tf.ensure_shape(number, []))


def _padded(values, num_rows):
    """Returns values [up to num_rows, ...] with rows of zeros at the end."""
    missing = num_rows - tf.shape(values)[0]
    paddings = [[0, missing]] + [[0, 0]] * (values.shape.rank - 1)
    return tf.ensure_shape(tf.pad(values, paddings), [num_rows, *values.shape[1:]])
