"""Batches of pretraining records; masks are drawn here if the records have none.

The release masks text once, while creating the records, and repeats the text
`dupe_factor` times with other masks. With `--dynamic_masking` the records contain the
text once, unmasked, and each batch is masked as it is read, so that no mask repeats.

The masks are drawn in NumPy inside tf.data, by the same `rows.MaskSampler`
that data creation uses. They are a function of (seed, step, index in the global batch):
a run that is killed and resumed sees the same masks, on any number of replicas. A row
of several packed sequences is masked as a whole: 15 % of the row, not of each sequence.
"""

import logging

import numpy as np
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import packing
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import numpy_arrays
from bert_tf.pretraining_data import release_masks
from bert_tf.pretraining_data import rows as rows_module
from bert_tf.tokenization import vocabulary as vocabulary_module

logger = logging.getLogger(__name__)

# The step that evaluation draws its masks for: always the same masks, never training's.
_EVALUATION_STEP = 2**63


def is_masked(schema: schema_module.Schema) -> bool:
    """Returns whether records were masked when they were created."""
    return "word_starts" not in schema


def create_source(
    record_files: tfrecord.RecordFiles,
    vocabulary: vocabulary_module.Vocabulary | None,
    options: pretraining_options.RunPretrainingOptions,
) -> batching.Source:
    """Returns the source that training or evaluation reads.

    Args:
        record_files: the records.
        vocabulary: the vocabulary of the records, or None if it is unknown.
        options: how to mask, and the seed.

    Raises:
        ValueError: a column is missing, or the records are unmasked and the vocabulary
            is unknown.
    """
    if is_masked(record_files.schema):
        return batching.TFRecordSource(record_files, columns_read(record_files))
    if vocabulary is None:
        raise ValueError(
            f"{record_files.paths[0]} was created with --dynamic_masking; masking it "
            "needs --vocab_file."
        )
    return MaskingSource(record_files, vocabulary, options)


def columns_read(record_files: tfrecord.RecordFiles) -> schema_module.Schema:
    """Returns the columns that training reads. As in 2018, others are ignored.

    Raises:
        ValueError: a column is missing, such as a mask that has a different name.
    """
    schema = record_files.schema
    masked = is_masked(schema)
    missing = [name for name in packing.ENCODER_COLUMNS if name not in schema]
    if missing:
        raise ValueError(
            f"{record_files.paths[0]} has no column {', '.join(missing)}, only "
            f"{', '.join(schema.names)}; create the examples again."
        )
    known = schema_module.pretraining(1, 1, is_masked=masked, sequences_per_row=1).names
    further = [name for name in schema.names if name not in known]
    if further:
        logger.warning(
            "%s has columns that training does not read: %s.",
            record_files.paths[0],
            ", ".join(further),
        )
    return schema_module.Schema(
        columns=tuple(column for column in schema.columns if column.name in known)
    )


def check_num_predictions(
    path: str,
    options: pretraining_options.RunPretrainingOptions,
) -> None:
    """Checks that max_predictions_per_seq allows for masked_lm_prob of a full row.

    Raises:
        ValueError: it is too small; `path` has unmasked records, or text.
    """
    length, limit = options.max_seq_length, options.max_predictions_per_seq
    wanted = release_masks.num_wanted(length, options.masked_lm_prob)
    if wanted > limit:
        raise ValueError(
            f"--max_predictions_per_seq={limit} allows masking only "
            f"{limit / length:.1%} of the {length} pieces of an example of "
            f"{path}, but --masked_lm_prob is "
            f"{options.masked_lm_prob:g}; pass --max_predictions_per_seq={wanted}, or "
            "a smaller --masked_lm_prob."
        )


class MaskingSource(batching.TFRecordSource):
    """Rows of unmasked records, masked as they are read."""

    def __init__(
        self,
        record_files: tfrecord.RecordFiles,
        vocabulary: vocabulary_module.Vocabulary,
        options: pretraining_options.RunPretrainingOptions,
    ):
        super().__init__(record_files, columns_read(record_files))
        self._masks = rows_module.MaskSampler(numpy_arrays, vocabulary, options)
        self._special_ids = (vocabulary.cls_id, vocabulary.sep_id)
        self._seed = options.random_seed

    def rows_at_step(
        self, step: tf.Tensor, indices: tf.Tensor, places: range
    ) -> dict[str, tf.Tensor]:
        """Returns rows with different masks in each step."""
        features = super().rows(indices, len(places))
        return self._masked(features, step, tf.range(places.start, places.stop))

    def rows(self, indices: tf.Tensor, num_rows: int) -> dict[str, tf.Tensor]:
        """Returns rows with the same masks each time, for evaluation."""
        features = super().rows(indices, num_rows)
        return self._masked(features, tf.constant(_EVALUATION_STEP, tf.uint64), indices)

    def _masked(self, features, step, rows):
        starts_word = features.pop("word_starts")
        ids = features["input_ids"]
        masked = tf.numpy_function(
            self._mask,
            [step, rows, ids, features["input_mask"], starts_word],
            [tf.int32, tf.int32, tf.int32, tf.float32],
            stateful=False,
        )
        shape = (ids.shape[0], self._masks.max_predictions)
        shapes = [ids.shape, shape, shape, shape]
        return features | {
            name: tf.ensure_shape(values, shape)
            for name, values, shape in zip(_MASKED, masked, shapes, strict=True)
        }

    def _mask(self, step, rows, ids, input_mask, starts_word):
        is_real = input_mask > 0
        # The first piece of a sequence starts a word even if it continues one in the
        # text; in a packed row, a sequence may follow another one.
        follows_cls = np.roll(ids == self._special_ids[0], 1, axis=1)
        columns = self._masks.mask(
            ids,
            is_real & ~np.isin(ids, self._special_ids),
            is_real.sum(axis=1),
            draws_module.RowDraws(
                numpy_arrays, draws_module.row_keys(self._seed, step, rows)
            ),
            (starts_word > 0) | follows_cls,
        )
        return [columns[name] for name in _MASKED]


_MASKED = (
    "input_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
)
