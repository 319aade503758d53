"""What the Model Garden, in all its versions, calls the release's weights."""

import pytest

from bert_tf.checkpoints.tf2 import garden_names


@pytest.mark.parametrize(
    "own, released",
    [
        # Today's.
        ("word_embeddings/embeddings", "bert/embeddings/word_embeddings"),
        ("e/position_embedding/embeddings", "bert/embeddings/position_embeddings"),
        ("type_embeddings/embeddings", "bert/embeddings/token_type_embeddings"),
        ("embeddings/layer_norm/beta", "bert/embeddings/LayerNorm/beta"),
        (
            "transformer/layer_11/self_attention/query/kernel",
            "bert/encoder/layer_11/attention/self/query/kernel",
        ),
        (
            "transformer/layer_0/self_attention/attention_output/bias",
            "bert/encoder/layer_0/attention/output/dense/bias",
        ),
        (
            "transformer/layer_0/self_attention_layer_norm/gamma",
            "bert/encoder/layer_0/attention/output/LayerNorm/gamma",
        ),
        (
            "transformer/layer_0/intermediate/kernel",
            "bert/encoder/layer_0/intermediate/dense/kernel",
        ),
        (
            "transformer/layer_0/output/kernel",
            "bert/encoder/layer_0/output/dense/kernel",
        ),
        (
            "transformer/layer_0/output_layer_norm/beta",
            "bert/encoder/layer_0/output/LayerNorm/beta",
        ),
        ("pooler_transform/kernel", "bert/pooler/dense/kernel"),
        ("bert/cls/predictions/output_bias/bias", "cls/predictions/output_bias"),
        ("sentence_prediction/logits/bias", "output_bias"),
        # Those of 2019, in TF Hub's series 2 for TensorFlow 2.
        ("bert_model/word_embeddings/embeddings", "bert/embeddings/word_embeddings"),
        (
            "bert_model/embedding_postprocessor/position_embeddings",
            "bert/embeddings/position_embeddings",
        ),
        (
            "bert_model/embedding_postprocessor/type_embeddings",
            "bert/embeddings/token_type_embeddings",
        ),
        (
            "bert_model/embedding_postprocessor/layer_norm/gamma",
            "bert/embeddings/LayerNorm/gamma",
        ),
        (
            "bert_model/encoder/layer_3/self_attention/key/bias",
            "bert/encoder/layer_3/attention/self/key/bias",
        ),
        (
            "bert_model/encoder/layer_3/self_attention_output/kernel",
            "bert/encoder/layer_3/attention/output/dense/kernel",
        ),
        ("bert_model/pooler_transform/bias", "bert/pooler/dense/bias"),
    ],
)
def test_a_variable_is_the_weight_that_its_name_says(own, released):
    named = garden_names.place({"variables/7": (own,)})
    assert named.keys == {released: "variables/7"}
    assert named.own_names == {released: own}


def test_the_releases_own_names_are_taken_as_they_are():
    names = ("bert/embeddings/word_embeddings", "output_weights", "something/else")
    named = garden_names.place({f"variables/{n}": (n,) for n in names})
    assert named.keys == {name: f"variables/{name}" for name in names}
    assert named.transposed == ()
