"""Object checkpoints that tf-models-official wrote; see foreign/make_tf_models.py."""

import pathlib
import shutil

import pytest

from bert_tf.checkpoints.tf2 import model_garden
from bert_tf.modeling import config as config_module

FOREIGN = pathlib.Path(__file__).parents[1] / "foreign" / "model_garden"
OLD = "embedding_postprocessor"
LAYER = "bert/encoder/layer_3/attention"


def test_sizes_come_from_shapes_and_what_they_leave_open_is_reported():
    source = model_garden.open_source(FOREIGN / "pretrainer")
    assert source.config == config_module.BertConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=24,
    )
    assert "pass --bert_config_file" in source.notes[0]
    assert "dropout" in source.notes[0]


def test_a_configuration_and_a_vocabulary_beside_it_are_taken(tmp_path):
    shutil.copytree(FOREIGN / "encoder", tmp_path / "model")
    config = tmp_path / "model" / "bert_config.json"
    config.write_text(config.read_text().replace('"gelu"', '"relu"'))
    source = model_garden.open_source(tmp_path / "model" / "bert_model.ckpt-1")
    assert source.config.hidden_act == "relu"
    assert len(source.vocabulary) == 60
    assert source.notes == ()


def test_the_pooler_of_the_head_is_taken_and_slots_are_no_weights():
    source = model_garden.open_source(FOREIGN / "trained")
    assert source.unmapped == (
        "bert_encoder_v2/pooler_transform/bias",
        "bert_encoder_v2/pooler_transform/kernel",
    )
    assert "its own pooler" in source.notes[0]
    assert len(source.shapes) == 46
    # m and v of all but the encoder's and the head's poolers and the head; besides
    # these global_step, save_counter and five numbers of Adam's.
    assert len(source.optimizer) == 2 * (46 - 4) + 7


def test_another_network_is_named():
    with pytest.raises(ValueError, match="is not a BERT: it is ALBERT") as error:
        model_garden.open_source(FOREIGN / "albert")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "own, released",
    [
        # Today's; foreign/model_garden has the others.
        ("sentence_prediction/logits/bias", "output_bias"),
        # Those of 2019, in TF Hub's series 2 for TensorFlow 2.
        ("word_embeddings/embeddings", "bert/embeddings/word_embeddings"),
        (f"{OLD}/position_embeddings", "bert/embeddings/position_embeddings"),
        (f"{OLD}/type_embeddings", "bert/embeddings/token_type_embeddings"),
        (f"{OLD}/layer_norm/gamma", "bert/embeddings/LayerNorm/gamma"),
        ("encoder/layer_3/self_attention/key/bias", f"{LAYER}/self/key/bias"),
        (
            "encoder/layer_3/self_attention_output/kernel",
            f"{LAYER}/output/dense/kernel",
        ),
        ("pooler_transform/bias", "bert/pooler/dense/bias"),
    ],
)
def test_a_variable_is_the_weight_that_its_name_says(own, released):
    own = f"bert_model/{own}"
    named = model_garden.place({"variables/7": own})
    assert named.keys == {released: "variables/7"}


def test_the_releases_own_names_are_taken_as_they_are():
    names = ("bert/embeddings/word_embeddings", "output_weights", "something/else")
    named = model_garden.place({f"variables/{n}": n for n in names})
    assert named.keys == {name: f"variables/{name}" for name in names}
    assert named.transposed == ()
