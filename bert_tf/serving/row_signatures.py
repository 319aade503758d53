"""The SavedModels with one row per input: classes, endings, vectors, masked words.

Shape letters: B batch, S sequence, C classes or endings, H hidden, M masks, K
candidates per mask, V vocabulary.
"""

from typing import Any

import tensorflow as tf

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.data import graph_packing
from bert_tf.modeling import numerics
from bert_tf.pretraining import predictor as mask_predictor
from bert_tf.serving import signatures

# The score of a missing ending; its probability is 0.
ABSENT = -1e9
OK = "ok"
NO_MASK = "no_mask"
TOO_LONG = "too_long"
# The logits of a [MASK] have one value per piece of the vocabulary, so they need as
# much memory as several positions.
_COST_OF_MASK = 4


class ClassSignatures(signatures.TaskSignatures):
    """The functions of a trained classifier.

    Args:
        predictor: of a trained classifier.

    Attributes:
        functions: `serving_default` takes `text`, and `text_b` for a model of pairs,
            string [B]. It returns `label`, string [B], and `probabilities`, float32
            [B, C]. A multi-label model returns `labels`, string [B, C], padded with "",
            instead of `label`; a regression model returns only `value`, float32 [B], or
            [B, C] with several targets.
            `ids` returns `logits`, float32 [B, C], and what follows from them. Models
            with classes also have `labels`, which ignores its input `text`, string [B],
            and returns `labels`, string [B, C]: the columns of `probabilities`.
    """

    def __init__(self, predictor: Any):
        functions: dict[str, Any] = {}
        if predictor.task.is_pair:
            pairs = signatures.texts("text", "text_b")
            functions["serving_default"] = (self._of_texts, pairs)
        if predictor.task.label_kind != checkpoint_heads.REGRESSION:
            functions["labels"] = (self._labels, signatures.texts("text"))
        super().__init__(predictor, **functions)

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `logits`, and `probabilities` or `values`."""
        return self.predictor.model(features)

    def _of_texts(self, text, text_b=None):
        task = self.predictor.task
        packed = graph_packing.pack_ragged(
            self._tokenizer.tokenize(text),
            None if text_b is None else self._tokenizer.tokenize(text_b),
            max_seq_length=task.max_seq_length,
            longer_keeps_more=task.longer_keeps_more,
            **self._frame,
        )
        answers = self.predictor.model.answers(self.in_parts(packed)["logits"])
        if task.label_kind == checkpoint_heads.REGRESSION:
            values = answers["values"]
            return {"value": numerics.score_of(values, task.output_activation)}
        probabilities = answers["probabilities"]
        if task.label_kind == checkpoint_heads.MULTI_LABEL:
            chosen = self._chosen(probabilities)
            return {"labels": chosen, "probabilities": probabilities}
        best = tf.argmax(probabilities, axis=-1)
        return {
            "label": tf.gather(tf.constant(task.labels), best),
            "probabilities": probabilities,
        }

    def _chosen(self, probabilities):
        """Returns the names of the predicted classes, padded with "", string [B, C]."""
        task = self.predictor.task
        counts = probabilities >= self.predictor.THRESHOLD
        names = tf.tile(tf.constant([task.labels]), [tf.shape(counts)[0], 1])
        chosen = tf.ragged.boolean_mask(names, counts)
        return chosen.to_tensor("", shape=[None, len(task.labels)])

    def _labels(self, text):
        labels = tf.constant(self.predictor.task.labels)
        return {"labels": tf.tile(labels[tf.newaxis], [tf.shape(text)[0], 1])}


class ChoiceSignatures(signatures.TaskSignatures):
    """The functions of a trained multiple choice model.

    Args:
        predictor: `multiple_choice.task.Predictor`.

    Attributes:
        functions: `serving_default` takes `text`, string [B], and `endings`, string
            [B, C], padded with "". It returns `label`, string [B], the number of the
            most likely ending, and `probabilities`, float32 [B, C], 0 for "". `ids`
            takes one row per ending and returns `scores`, float32 [B].
    """

    def __init__(self, predictor: Any):
        specs = signatures.texts("text")
        specs["endings"] = tf.TensorSpec([None, None], tf.string, name="endings")
        super().__init__(predictor, serving_default=(self._of_texts, specs))

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `scores`."""
        return {"scores": self.predictor.model.scores(features)}

    def _of_texts(self, text, endings):
        starts = self._tokenizer.tokenize(text)
        num_endings = tf.shape(endings, tf.int64)[1]
        numbers = tf.repeat(tf.range(starts.nrows()), num_endings)
        features = graph_packing.pack_ragged(
            tf.gather(starts, numbers),
            self._tokenizer.tokenize(tf.reshape(endings, [-1])),
            max_seq_length=self.predictor.task.max_seq_length,
            **self._frame,
        )
        scores = tf.reshape(self.in_parts(features)["scores"], tf.shape(endings))
        scores = tf.where(is_absent(endings), ABSENT, scores)
        # A request without texts may have no column of endings, either.
        missing = tf.cast((tf.size(text) == 0) & (num_endings == 0), tf.int32)
        best = tf.argmax(tf.pad(scores, [[0, 0], [0, missing]]), axis=-1)
        return {
            "label": tf.strings.as_string(best),
            "probabilities": tf.nn.softmax(scores),
        }


def is_absent(endings: tf.Tensor) -> tf.Tensor:
    """Returns where there is no ending; bool [B, C].

    A client pads endings with "". With `pad_variable_length_inputs`, TensorFlow Serving
    repeats the first ending of the request after the last one instead.

    Args:
        endings: string [B, C].
    """
    is_first = tf.range(tf.shape(endings)[1]) == 0
    is_padding = (endings == "") | (endings == endings[:, :1])
    is_tail = tf.math.cumprod(tf.cast(is_padding, tf.int32), axis=1, reverse=True) > 0
    return (endings == "") | (is_tail & ~is_first)


class VectorSignatures(signatures.TaskSignatures):
    """The functions of a trained bi-encoder, or of an exported encoder.

    An exported encoder is a bi-encoder whose queries and passages have the same maximum
    length.

    Args:
        predictor: `BiEncoderPredictor`.

    Attributes:
        functions: `serving_default` takes `text`, passages, string [B], and returns
            `embedding`, float32 [B, H], usually vectors of length 1. `query` does the
            same for queries, whose maximum length and prompt may differ. `ids` returns
            `embedding` and ignores `segment_ids`.
    """

    def __init__(self, predictor: Any):
        super().__init__(predictor, query=(self._of_queries, signatures.texts("text")))

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `embedding`."""
        used = {name: features[name] for name in ("input_ids", "input_mask")}
        return {"embedding": self.predictor.model(used)["embeddings"]}

    def _of_texts(self, text):
        task = self.predictor.task
        return self._vectors(text, task.max_seq_length, task.passage_prompt)

    def _of_queries(self, text):
        task = self.predictor.task
        return self._vectors(text, task.max_query_length, task.query_prompt)

    def _vectors(self, text, max_seq_length, prompt):
        return self.in_parts(
            graph_packing.pack_ragged(
                self._tokenizer.tokenize(_with_prompt(text, prompt)),
                max_seq_length=max_seq_length,
                **self._frame,
            )
        )


class ScoreSignatures(signatures.TaskSignatures):
    """The functions of a trained cross-encoder.

    Args:
        predictor: `CrossEncoderPredictor`.

    Attributes:
        functions: `serving_default` takes `text`, the query, and `text_b`, the passage,
            string [B], and returns `score`, float32 [B]. `ids` returns `score`.
    """

    TEXTS = ("text", "text_b")

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `score`."""
        logits = self.predictor.model(features)["logits"]
        activation = self.predictor.task.output_activation
        return {"score": numerics.score_of(logits, activation)}

    def _of_texts(self, text, text_b):
        task = self.predictor.task
        queries = self._tokenizer.tokenize(_with_prompt(text, task.query_prompt))
        passages = self._tokenizer.tokenize(text_b)
        known = {"max_seq_length": task.max_seq_length, **self._frame}
        pack = graph_packing.pack_ragged
        if task.longer_keeps_more:
            return self.in_parts(
                pack(queries, passages, longer_keeps_more=True, **known)
            )
        queries = queries[:, : task.max_query_length - 2]
        # Only the passage is truncated, even if it is shorter than the query.
        room = task.max_seq_length - task.num_special - queries.row_lengths()
        passages = graph_packing.cut(passages, tf.minimum(passages.row_lengths(), room))
        return self.in_parts(pack(queries, passages, **known))


def _with_prompt(text: tf.Tensor, prompt: str) -> tf.Tensor:
    return tf.strings.join([prompt, text]) if prompt else text


def retrieval_signatures(predictor: Any) -> VectorSignatures | ScoreSignatures:
    """Returns the signatures of a trained bi-encoder or cross-encoder."""
    if predictor.task.is_bi_encoder:
        return VectorSignatures(predictor)
    return ScoreSignatures(predictor)


class MaskSignatures(signatures.TaskSignatures):
    """The functions of a masked-word model.

    Args:
        predictor: `MaskPredictor`.

    Attributes:
        functions: `serving_default` takes `text`, string [B], and returns `tokens`,
            string [B, M, K], and `probabilities`, float32 [B, M, K], the likeliest
            piece first. M is the largest number of masks in a text, at least 1; shorter
            rows are padded with "" and 0. `num_masks`, int32 [B], is the number of
            masks in each text. `status`, string [B], is "ok", "no_mask", or "too_long":
            such a text is not truncated, because a mask could be lost, and has no
            candidates. `ids` returns the same without `status`, for the positions that
            hold the id of [MASK], and `positions`, int32 [B, M], padded with -1.
    """

    def __init__(self, predictor: Any):
        vocabulary = predictor.vocabulary
        self._top_k = min(predictor.task.top_k, len(vocabulary))
        self._mask_id = vocabulary[mask_predictor.MASK]
        with tf.init_scope(), tf.device("/CPU:0"):
            self._tokens = tf.constant(vocabulary.tokens)  # [V]
        super().__init__(predictor)

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the likeliest pieces of every [MASK]."""
        is_mask = self._is_mask(features)
        counts = tf.reduce_sum(is_mask, axis=1)  # [B]
        num_masks = _most(counts)
        is_real = tf.sequence_mask(counts, num_masks)  # [B, M]
        # The stable sort puts the masks first, in their order.
        order = tf.argsort(is_mask, 1, "DESCENDING", stable=True)
        positions = order[:, :num_masks]  # [B, M]
        likeliest = self.predictor.likeliest(
            {**features, "masked_lm_positions": positions}, self._top_k
        )
        tokens = tf.gather(self._tokens, likeliest.indices)
        is_candidate = is_real[:, :, tf.newaxis]
        return {
            "tokens": tf.where(is_candidate, tokens, ""),
            "probabilities": tf.where(is_candidate, likeliest.values, 0.0),
            "positions": tf.where(is_real, positions, -1),
            "num_masks": counts,
        }

    def of_features(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns the outputs of the `ids` signature."""
        counts = tf.reduce_sum(self._is_mask(features), axis=1)  # [B]
        return self.in_parts(
            features,
            width=_most(counts),
            costs=_COST_OF_MASK * counts,
            padding={"positions": -1},
        )

    def _is_mask(self, features):
        """Returns 1 for the positions of [MASK], otherwise 0: int32 [B, S]."""
        is_mask = features["input_ids"] == self._mask_id
        return tf.cast(is_mask & (features["input_mask"] != 0), tf.int32)

    def _of_texts(self, text):
        pieces = self._tokenizer.tokenize(text)
        is_mask = tf.cast(pieces == self._mask_id, tf.int32)
        num_masks = tf.reduce_sum(is_mask, axis=1)  # [B]
        lengths = pieces.row_lengths()
        is_too_long = lengths > self.predictor.task.max_seq_length - 2
        pieces = graph_packing.cut(
            pieces, tf.where(is_too_long, tf.zeros_like(lengths), lengths)
        )
        outputs = self.of_features(graph_packing.framed(pieces, **self._frame))
        status = tf.where(num_masks == 0, NO_MASK, OK)
        del outputs["positions"]
        return outputs | {
            "num_masks": num_masks,
            "status": tf.where(is_too_long, TOO_LONG, status),
        }


def _most(counts):
    """Returns M, the largest number of masks in a row, at least 1."""
    return tf.reduce_max(tf.concat([counts, [1]], axis=0))
