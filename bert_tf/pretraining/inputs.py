"""Records to the rows that training reads; those without masks are masked here.

Masks are a function of (seed, step, place in the step's batch): a run that is killed
and started again meets the same ones, on any number of replicas.
"""

import numpy as np
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.pretraining_data import draws as draws_module
from bert_tf.pretraining_data import mask_sampling
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tokenization import vocabulary as vocabulary_module

_MASKED_AT_A_TIME = 2  # Batches.
_BATCHES_AHEAD = 4
# Evaluation has masks of its own, always the same ones.
_EVALUATION_STEP = 2**63


def is_masked(schema: schema_module.Schema) -> bool:
    """Returns whether records were masked when they were created."""
    return "word_starts" not in schema


def create_source(
    record_files: tfrecord.RecordFiles,
    vocabulary: vocabulary_module.Vocabulary | None,
    options,
) -> batching.Source:
    """Returns the source that training or evaluation reads.

    Args:
        record_files: the records.
        vocabulary: that of the records, where it is known.
        options: `RunPretrainingOptions`: how to mask, and the seed.

    Raises:
        ValueError: unmasked records without a vocabulary.
    """
    if is_masked(record_files.schema):
        return batching.TFRecordSource(record_files)
    if vocabulary is None:
        raise ValueError(
            f"{record_files.paths[0]} was created with --dynamic_masking, and masks "
            "need its vocabulary; give --vocab_file."
        )
    masks = mask_sampling.MaskSampler(
        vocabulary,
        masked_lm_prob=options.masked_lm_prob,
        max_predictions=options.max_predictions_per_seq,
        whole_words=options.do_whole_word_mask,
        spans=options.masking == "span",
        shares=options.shares,
    )
    return MaskingSource(record_files, masks, vocabulary, seed=options.random_seed)


def check_masking(record_files: tfrecord.RecordFiles, options) -> None:
    """Checks that masks are asked for only where there are none.

    Args:
        record_files: the records to train on.
        options: `RunPretrainingOptions`.

    Raises:
        ValueError: the records are masked already.
    """
    if not is_masked(record_files.schema):
        return
    for name in pretraining_data_options.MASKING_OPTIONS:
        default = type(options).__dataclass_fields__[name].default
        if getattr(options, name) != default:
            raise ValueError(
                f"--{name} needs examples without masks, and those of "
                f"{record_files.paths[0]} have some; create them with "
                "--dynamic_masking."
            )


def check_num_predictions(record_files: tfrecord.RecordFiles, options) -> None:
    """Checks that a whole example has room for the masks that its length asks for.

    Args:
        record_files: records without masks.
        options: `RunPretrainingOptions`.

    Raises:
        ValueError: it has not.
    """
    length, given = options.max_seq_length, options.max_predictions_per_seq
    wanted = round(length * options.masked_lm_prob)
    if wanted > given:
        raise ValueError(
            f"--max_predictions_per_seq={given} masks {given / length:.1%} of the "
            f"{length} pieces of an example of {record_files.paths[0]}, and "
            f"--masked_lm_prob is {options.masked_lm_prob:g}; give "
            f"--max_predictions_per_seq={wanted}, or a smaller --masked_lm_prob."
        )


class MaskingSource(batching.Source):
    """Rows of unmasked records, masked whenever they are read.

    Args:
        record_files: records of create_pretraining_data with --dynamic_masking.
        masks: draws the masks.
        vocabulary: [CLS] and [SEP], which are never masked.
        seed: fixes the masks.

    Attributes:
        num_examples, columns: as those of `batching.TFRecordSource`.
    """

    def __init__(
        self,
        record_files: tfrecord.RecordFiles,
        masks: mask_sampling.MaskSampler,
        vocabulary: vocabulary_module.Vocabulary,
        *,
        seed: int,
    ):
        self._source = batching.TFRecordSource(record_files)
        self.num_examples = self._source.num_examples
        self.columns = self._source.columns
        self._masks = masks
        self._special_ids = (vocabulary.cls_id, vocabulary.sep_id)
        self._seed = seed

    def training_batches(self, **arguments) -> tf.data.Dataset:
        """Returns `batching.training_batches` with masks that no step repeats."""
        batches = self._source.training_batches(**arguments)
        return self._masked(
            batches,
            lambda features: (features["step"][0], features["example_index"], features),
        )

    def evaluation_batches(self, **arguments) -> tf.data.Dataset:
        """Returns `batching.evaluation_batches`; a row always has the same masks."""
        batches = self._source.evaluation_batches(**arguments).enumerate()

        def with_rows(number, features):
            size = arguments["batch_size"]
            rows = number * size + tf.range(size, dtype=tf.int64)
            return tf.constant(_EVALUATION_STEP, tf.uint64), rows, features

        return self._masked(batches, with_rows)

    def _masked(self, batches, with_place):
        def mask(*batch):
            step, rows, features = with_place(*batch)
            starts_word = features.pop("word_starts")
            names = ("input_ids", "input_mask")
            masked = tf.numpy_function(
                self._mask,
                [step, rows, *(features[name] for name in names), starts_word],
                [tf.int32, tf.int32, tf.int32, tf.float32],
            )
            num_rows = features["input_ids"].shape[0]
            shape = (num_rows, self._masks.max_predictions)
            shapes = [features["input_ids"].shape, shape, shape, shape]
            for name, values, shape in zip(_MASKED, masked, shapes, strict=True):
                features[name] = tf.ensure_shape(values, shape)
            return features

        masked = batches.map(
            mask, num_parallel_calls=_MASKED_AT_A_TIME, deterministic=True
        )
        return masked.prefetch(_BATCHES_AHEAD)

    def _mask(self, step, rows, ids, input_mask, starts_word):
        is_real = input_mask > 0
        # A sequence may begin inside a word, and others may stand before it.
        follows_cls = np.roll(ids == self._special_ids[0], 1, axis=1)
        masked = self._masks.mask(
            ids,
            is_real & ~np.isin(ids, self._special_ids),
            is_real.sum(axis=1),
            draws_module.RowDraws(draws_module.row_keys(self._seed, step, rows)),
            (starts_word > 0) | follows_cls,
        )
        columns = masked.columns()
        return [columns[name] for name in _MASKED]


_MASKED = (
    "input_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
)
