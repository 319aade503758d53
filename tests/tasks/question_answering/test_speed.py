"""All of SQuAD 1.1 is cut into windows, and answered, in less than a minute."""

import time

import numpy as np
import pytest

from bert_tf.tasks.question_answering import alignment
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tokenization import full

pytestmark = pytest.mark.slow
SIZES = features_module.WindowSizes(
    max_seq_length=384, doc_stride=128, max_query_length=64
)


@pytest.fixture(scope="module")
def tokenizer(shared):
    return full.FullTokenizer(
        str(shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt")
    )


def test_the_training_file_becomes_columns_in_a_minute(shared, tokenizer):
    started = time.process_time()
    squad_file = question_answering_examples.read_squad(
        str(shared / "data" / "squad" / "train-v1.1.json")
    )
    given = features_module.convert_examples_to_features(
        question_answering_examples.training_examples(
            squad_file, version_2_with_negative=False
        ),
        tokenizer,
        SIZES,
        is_training=True,
    )
    num_pieces = 0
    for start in range(0, len(given), 4096):
        columns = given.rows(np.arange(start, min(start + 4096, len(given))))
        num_pieces += int(columns["input_mask"].sum())
    assert len(given) == 88_641
    assert num_pieces == given.lengths.sum()
    assert time.process_time() - started < 60


def test_the_development_file_is_answered_in_half_a_minute(shared, tokenizer, tmp_path):
    squad_file = question_answering_examples.read_squad(
        str(shared / "data" / "squad" / "dev-v1.1.json")
    )
    given = features_module.convert_examples_to_features(
        squad_file.examples, tokenizer, SIZES, is_training=False
    )
    draws = np.random.default_rng(0)
    shape = (len(given), SIZES.max_seq_length)
    logits = [draws.normal(size=shape).astype(np.float32) for _ in range(2)]
    started = time.process_time()
    found = question_answering_predictions.predictions_of(
        given,
        logits,
        question_answering_predictions.Rules(),
        alignment.Aligner(tokenizer.vocabulary, do_lower_case=True),
    )
    question_answering_predictions.write_predictions(str(tmp_path), found, None)
    assert len(found) == 10_570
    assert time.process_time() - started < 30
