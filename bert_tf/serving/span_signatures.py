"""The SavedModel of a question answering model: questions and contexts to answers.

Shape letters: B questions, W windows, S sequence.
"""

import tensorflow as tf

from bert_tf.data import graph_packing
from bert_tf.modeling import numerics
from bert_tf.serving import answer_spans
from bert_tf.serving import signatures
from bert_tf.serving import word_splitting
from bert_tf.tokenization import wordpiece

LOGITS = ("start_logits", "end_logits")


class SpanSignatures(signatures.TaskSignatures):
    """The functions of a trained question answering model.

    Args:
        predictor: `question_answering.task.Predictor`.

    Attributes:
        functions: `serving_default` takes `question` and `context`, string [B]; a
            context may have any length. It returns `answer`, string [B], "" for none;
            `start` and `end`, int64 [B], characters of the context; `score` of the best
            answer and `no_answer_score`, float32 [B]. A blank context has the answer
            "": `predict` refuses it, but a SavedModel cannot refuse one row of a batch.
            `ids` returns `start_logits` and `end_logits`, float32 [B, S].
    """

    HAS_POSITIONS = True
    TEXTS = ("question", "context")

    def outputs(self, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Returns `start_logits` and `end_logits`."""
        outputs = self.predictor.model(features)
        return {name: outputs[name] for name in LOGITS}

    def _of_texts(self, question, context):
        contexts = word_splitting.split(
            context, separators=self.predictor.WORD_SEPARATORS
        )
        pieces = contexts.words.with_values(
            self._tokenizer.tokenize(contexts.words.values)
        )  # [B, words, pieces]
        ids = pieces.merge_dims(1, 2)
        best, no_answer = self._best_spans(question, ids)
        # Indices below count the pieces and words of all contexts, concatenated.
        first, last = (
            ids.row_starts() + n for n in (best.first_piece, best.last_piece)
        )
        word = pieces.values.value_rowids()
        first_word, last_word = (self._gathered(word, piece) for piece in (first, last))
        candidate, takes_null = self._scores(best, no_answer)
        has_answer = best.is_found & ~takes_null
        answers = answer_spans.answers(
            contexts,
            tf.where(has_answer, first_word - contexts.words.row_starts(), 0),
            tf.where(has_answer, last_word - first_word + 1, 0),
            self._tokenizer.basic_tokens,
            texts=self._texts_of(ids, first, tf.where(has_answer, last + 1, first)),
            first_piece=self._piece(pieces.values, first_word, first),
            last_piece=self._piece(pieces.values, last_word, last),
        )
        is_blank = contexts.words.row_lengths() == 0
        if not self.predictor.task.version_2_with_negative:
            answers["answer"] = tf.where(
                best.is_found | is_blank,
                answers["answer"],
                self.predictor.NO_CANDIDATE,
            )
        return answers | {
            "score": tf.cast(candidate, tf.float32),
            "no_answer_score": tf.cast(no_answer, tf.float32),
        }

    def _best_spans(self, question, context_ids):
        task = self.predictor.task
        question_ids = self._tokenizer.tokenize(question)[:, : task.max_query_length]
        room = task.sizes.row_room - question_ids.row_lengths()
        windows = graph_packing.windows_over(
            context_ids.row_lengths(), room, task.sizes.doc_stride
        )
        pieces = graph_packing.part(
            context_ids, windows.text, windows.start, windows.length
        )
        questions = tf.gather(question_ids, windows.text)
        features = graph_packing.framed(questions, pieces, **self._frame)
        is_real = features["input_mask"] > 0
        outputs = self.in_parts(features)
        # A request without rows has no positions, either, but [CLS] must exist.
        missing = tf.cast(tf.shape(is_real)[1] == 0, tf.int32)
        logits = [
            tf.pad(
                tf.where(is_real, outputs[name], numerics.ATTENTION_MASK_BIAS),
                [[0, 0], [0, missing]],
            )
            for name in LOGITS
        ]
        best = answer_spans.best_spans(windows, question_ids, context_ids, logits, task)
        # The lowest score of [CLS] among each question's windows.
        of_cls = tf.add(*(tf.cast(one[:, 0], tf.float64) for one in logits))
        return best, tf.math.segment_min(of_cls, windows.text)

    def _scores(self, best, no_answer):
        """Returns the score of the best candidate, and whether "no answer" wins.

        As in `question_answering.predictions`: "no answer" wins if its score exceeds
        that of the best span by more than the threshold (section 4.3 of the paper).
        """
        score = best.start_logit + best.end_logit
        task = self.predictor.task
        if not task.version_2_with_negative:
            return score, tf.zeros_like(score, bool)
        null_is_best = ~best.is_found
        if task.n_best_size == 1:
            null_is_best |= score < no_answer
        null_odds = no_answer - best.start_logit - best.end_logit
        return tf.where(null_is_best, no_answer, score), null_is_best | (
            null_odds > task.threshold
        )

    def _piece(self, words, word, piece):
        """Returns a `Piece` of each answer, whose `word` and `piece` are int64 [B].

        Both are counted over all words, whose pieces are `words`, int32 [words, P].
        """
        tokens = tf.constant(self.predictor.vocabulary.tokens)
        words = tf.concat([words, tf.ragged.constant([[]], words.dtype)], axis=0)
        of_word = tf.gather(words, word)
        return answer_spans.Piece(
            of_word=of_word.with_values(tf.gather(tokens, of_word.values)),
            index=piece - tf.gather(words.row_starts(), word),
        )

    def _texts_of(self, ids, first, end):
        """Returns pieces joined to texts, as `alignment.joined` does."""
        indices = tf.ragged.range(first, end)
        tokens = tf.constant(self.predictor.vocabulary.tokens)
        pieces = tf.gather(tokens, self._gathered(ids.values, indices.values))
        pieces = indices.with_values(pieces)
        text = tf.strings.reduce_join(pieces, axis=1, separator=" ")
        for joint in (f" {wordpiece.CONTINUATION}", wordpiece.CONTINUATION):
            text = tf.strings.regex_replace(text, joint, "")
        return text

    def _gathered(self, values, indices):
        """Returns the values at indices; 0 for the index after the last value."""
        return tf.gather(tf.pad(values, [[0, 1]]), indices)
