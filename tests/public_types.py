"""What a type checker knows of the public names; `make lint` checks it."""

from typing import assert_type

import numpy as np

import bert_tf


def of_public_names(texts: list[str]) -> None:
    model = bert_tf.BertClassifier.from_pretrained("bert-tf-mini", num_labels=2)
    assert_type(model, bert_tf.BertClassifier)
    assert_type(model.encoder, bert_tf.BertModel)
    assert_type(bert_tf.embed("bert-tf-mini", texts), np.ndarray)
