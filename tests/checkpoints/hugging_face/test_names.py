"""The names of weights in Hugging Face's folders."""

import pytest
import safetensors

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.hugging_face import names
from bert_tf.modeling import config as config_module

TINY = config_module.BertConfig(
    vocab_size=7,
    hidden_size=4,
    num_hidden_layers=2,
    num_attention_heads=1,
    intermediate_size=6,
    max_position_embeddings=5,
    type_vocab_size=3,
)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight"),
        ("bert/embeddings/LayerNorm/beta", "bert.embeddings.LayerNorm.bias"),
        (
            "bert/encoder/layer_11/attention/self/query/kernel",
            "bert.encoder.layer.11.attention.self.query.weight",
        ),
        (
            "bert/encoder/layer_0/output/LayerNorm/gamma",
            "bert.encoder.layer.0.output.LayerNorm.weight",
        ),
        ("bert/pooler/dense/bias", "bert.pooler.dense.bias"),
        (
            "cls/predictions/transform/dense/kernel",
            "cls.predictions.transform.dense.weight",
        ),
        ("cls/predictions/output_bias", "cls.predictions.bias"),
        ("cls/squad/output_weights", "qa_outputs.weight"),
        ("output_bias", "classifier.bias"),
    ],
)
def test_a_weight_is_called_otherwise_there(name, expected):
    assert names.hugging_face_name(name) == expected


@pytest.mark.parametrize(
    "name, expected",
    [
        ("bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        ("embeddings.LayerNorm.beta", "bert.embeddings.LayerNorm.bias"),
        ("encoder.layer.0.output.dense.bias", "bert.encoder.layer.0.output.dense.bias"),
        ("pooler.dense.weight", "bert.pooler.dense.weight"),
        ("cls.predictions.transform.LayerNorm.gamma",) * 2,
        ("classifier.weight", "classifier.weight"),
    ],
)
def test_names_of_all_generations_become_those_of_today(name, expected):
    expected = expected.replace("gamma", "weight")
    assert names.normal_name(name) == expected


@pytest.mark.parametrize("kind", checkpoint_heads.KINDS)
def test_shapes_are_those_of_our_models(kind):
    num_labels = 3 if kind in ("classification", "token_classification") else None
    model = checkpoint_heads.create_model(
        TINY, checkpoint_heads.Head(kind=kind, num_labels=num_labels)
    )
    expected = {
        name: tuple(variable.shape)
        for name, variable in checkpoint_names.checkpoint_variables(model).items()
    }
    shapes = checkpoint_names.encoder_shapes(TINY) | checkpoint_heads.head_shapes(
        TINY, kind, num_labels
    )
    assert shapes == expected


@pytest.mark.parametrize("kind", checkpoint_heads.KINDS)
def test_names_and_turned_shapes_are_those_that_transformers_wrote(foreign, kind):
    sizes = config_module.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=20,
    )
    num_labels = {"classification": 3, "token_classification": 5}.get(kind)
    shapes = checkpoint_names.encoder_shapes(sizes)
    if not checkpoint_heads.HEADS[kind].hugging_face_has_pooler:
        kept = checkpoint_names.without_pooler(shapes)
        shapes = {name: shapes[name] for name in kept}
    shapes |= checkpoint_heads.head_shapes(sizes, kind, num_labels)
    ours = {
        names.hugging_face_name(name): names.transposed_shape(name, shape)
        for name, shape in shapes.items()
    }
    with safetensors.safe_open(foreign / kind / "model.safetensors", "numpy") as file:
        theirs = {
            names.normal_name(name): tuple(file.get_slice(name).get_shape())
            for name in file.keys()  # noqa: SIM118
        }
    assert ours == theirs


@pytest.mark.parametrize(
    "name, expected",
    [
        ("bert.embeddings.position_ids", True),
        ("embeddings.position_ids", True),
        ("bert.embeddings.token_type_ids", True),
        ("bert.embeddings.position_embeddings.weight", False),
    ],
)
def test_buffers_are_known_by_name(name, expected):
    assert names.is_buffer(name) is expected
