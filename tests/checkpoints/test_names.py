"""The name of a variable in a checkpoint."""

import pytest

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.modeling import bert
from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module

TINY = config_module.BertConfig(
    vocab_size=5,
    hidden_size=4,
    num_hidden_layers=1,
    num_attention_heads=1,
    intermediate_size=4,
    max_position_embeddings=4,
)


@pytest.mark.parametrize("name", ["bert", "encoder", "layer_0"])
def test_the_name_of_an_encoder_alone_does_not_matter(name):
    written = checkpoint_names.checkpoint_variables(bert.BertModel(TINY, name=name))
    assert {key.partition("/")[0] for key in written} == {"bert"}
    assert "bert/encoder/layer_0/attention/self/query/kernel" in written


@pytest.mark.parametrize("name", ["bert_classifier", "bert", "anything"])
def test_the_name_of_a_tasks_model_is_left_out(name):
    model = classifier.BertClassifier(TINY, num_labels=2, name=name)
    written = checkpoint_names.checkpoint_variables(model)
    assert {key.partition("/")[0] for key in written} == {
        "bert",
        "output_weights",
        "output_bias",
    }
    assert written["bert/pooler/dense/bias"] is model.bert.pooler.dense.bias


@pytest.mark.parametrize(
    "name, expected",
    [
        ("global_step", True),
        ("bert/pooler/dense/kernel/adam_m", True),
        ("output_bias/adam_v", True),
        ("bert/pooler/dense/kernel", False),
        ("adam_m/kernel", False),
    ],
)
def test_slots_and_step_belong_to_the_optimizer(name, expected):
    assert checkpoint_names.is_of_optimizer(name) == expected
