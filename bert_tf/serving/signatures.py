"""What a SavedModel answers to: text to classes, and ids to classes.

Everything is made of ops that model servers know. Rows are cut by slicing ragged ids:
TensorFlow Text's trimmers are ops that some servers lack.

Shape letters: B batch, S sequence, C classes.
"""

import tensorflow as tf


class ClassifierSignatures(tf.Module):
    """A trained classifier with its tokenizer, as TensorFlow functions.

    It holds the model's variables and not the model, so that a SavedModel of it has
    nothing of Keras in it.

    Args:
        classifier: `classification.trained.TrainedClassifier`.

    Attributes:
        functions: dict of the signature's name to its `tf.function`:
            `serving_default`: `text`, and `text_b` for a model of pairs, string [B],
                to `label`, string [B], and `probabilities`, float32 [B, C].
            `ids`: `input_ids`, `input_mask`, `segment_ids`, int32 [B, S], to `logits`
                and `probabilities`, float32 [B, C].
            `labels`: `text`, string [B], which is not looked at, to `labels`, string
                [B, C]: the names of the columns of `probabilities`.
    """

    def __init__(self, classifier):
        super().__init__()
        self._classifier = _Untracked(classifier)
        self._variables = [variable.value for variable in classifier.model.variables]
        self._tokenizer = classifier.tokenizer
        text = {"text": tf.TensorSpec([None], tf.string, name="text")}
        texts = dict(text)
        if classifier.task.is_pair:
            texts["text_b"] = tf.TensorSpec([None], tf.string, name="text_b")
        ids = {
            name: tf.TensorSpec([None, None], tf.int32, name=name)
            for name in ("input_ids", "input_mask", "segment_ids")
        }
        self.functions = {
            "serving_default": _signature(self._classify_texts, texts),
            "ids": _signature(self._classify_ids, ids),
            "labels": _signature(self._name_labels, text),
        }

    def _classify_texts(self, text, text_b=None):
        vocabulary = self._classifier.value.vocabulary
        ids_b = None if text_b is None else self._tokenizer.tokenize(text_b)
        features = pack_ragged(
            self._tokenizer.tokenize(text),
            ids_b,
            max_seq_length=self._classifier.value.task.max_seq_length,
            cls_id=vocabulary.cls_id,
            sep_id=vocabulary.sep_id,
        )
        probabilities = self._classify_ids(**features)["probabilities"]
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(tf.constant(self._classifier.value.task.labels), best),
            "probabilities": probabilities,
        }

    def _classify_ids(self, input_ids, input_mask, segment_ids):
        outputs = self._classifier.value.model(
            {
                "input_ids": input_ids,
                "input_mask": input_mask,
                "segment_ids": segment_ids,
            }
        )
        return {name: outputs[name] for name in ("logits", "probabilities")}

    def _name_labels(self, text):
        labels = tf.constant(self._classifier.value.task.labels)
        return {"labels": tf.tile(labels[tf.newaxis], [tf.shape(text)[0], 1])}


def pack_ragged(ids_a, ids_b=None, *, max_seq_length, cls_id, sep_id):
    """Returns the encoder's features, as `data.packing.pack`, from ids in a graph.

    Rows are padded to the longest one, which is faster to serve and gives the same.

    Args:
        ids_a: int32 RaggedTensor [B, pieces].
        ids_b: the same for second texts, or None.
        max_seq_length: int; longer rows are cut, of a pair the longer text first.
        cls_id: int.
        sep_id: int.

    Returns:
        `input_ids`, `input_mask`, `segment_ids`: int32 [B, S], S at most
        `max_seq_length`.
    """
    num_special = 2 if ids_b is None else 3
    limit = tf.constant(max_seq_length - num_special, tf.int64)
    lengths_a = ids_a.row_lengths()
    if ids_b is None:
        keep_a = tf.minimum(lengths_a, limit)
    else:
        keep_a, keep_b = _kept_of_pair(lengths_a, ids_b.row_lengths(), limit)
    cls = tf.fill([ids_a.nrows(), 1], cls_id)
    sep = tf.fill([ids_a.nrows(), 1], sep_id)
    parts = [cls, _cut(ids_a, keep_a), sep]
    if ids_b is not None:
        parts += [_cut(ids_b, keep_b), sep]
    rows = tf.concat(parts, axis=1)
    input_ids = rows.to_tensor()  # [B, S]
    columns = tf.range(tf.shape(input_ids, tf.int64)[1])[tf.newaxis]
    is_real = columns < rows.row_lengths()[:, tf.newaxis]
    is_second = is_real & (columns >= keep_a[:, tf.newaxis] + 2)
    return {
        "input_ids": input_ids,
        "input_mask": tf.cast(is_real, tf.int32),
        "segment_ids": tf.cast(is_second, tf.int32),
    }


class _Untracked:
    """Keeps an object out of what `tf.Module` writes into a SavedModel."""

    def __init__(self, value):
        self.value = value


def _signature(function, specs):
    # Keyword arguments of a signature are those of its function, so in this order.
    return tf.function(function, input_signature=list(specs.values()))


def _kept_of_pair(lengths_a, lengths_b, limit):
    """Where `packing.truncate_pair` ends: the longer text gives way, B when equal."""
    cut_b = tf.minimum(lengths_b, tf.maximum(limit // 2, limit - lengths_a))
    fits = lengths_a + lengths_b <= limit
    return tf.where(fits, lengths_a, limit - cut_b), tf.where(fits, lengths_b, cut_b)


def _cut(ids, lengths):
    """Returns the first `lengths` ids of each row of a RaggedTensor."""
    positions = tf.ragged.range(ids.row_lengths()).flat_values
    is_kept = positions < tf.repeat(lengths, ids.row_lengths())
    values = tf.boolean_mask(ids.flat_values, is_kept)
    return tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
