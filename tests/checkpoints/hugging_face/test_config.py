"""config.json: what is read, and which models are not BERT."""

import pytest

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints.hugging_face import config as config_file


@pytest.mark.parametrize(
    "hidden_act, ours, written",
    [
        ("gelu", "gelu_erf", "gelu"),
        ("gelu_new", "gelu", "gelu_new"),
        ("gelu_pytorch_tanh", "gelu", "gelu_new"),
        (None, "gelu_erf", "gelu"),  # Not stated: the default of transformers.
        ("relu", "relu", "relu"),
        ("tanh", "tanh", "tanh"),
        ("linear", "linear", "linear"),
    ],
)
def test_the_activation_has_another_name_there(copied, hidden_act, ours, written):
    described = config_file.read(copied("encoder", hidden_act=hidden_act))
    assert described.config.hidden_act == ours
    back = config_file.to_dict(
        described.config, checkpoint_heads.Head(kind="encoder"), 0
    )
    assert back["hidden_act"] == written


@pytest.mark.parametrize(
    "id2label, expected",
    [
        ({"1": "b", "0": "a"}, ("a", "b")),  # By number, not in order of appearance.
        ({str(i): f"n{i}" for i in range(11)}, tuple(f"n{i}" for i in range(11))),
        ({"0": "LABEL_0", "1": "LABEL_1"}, None),  # transformers' placeholders.
        (None, None),
    ],
)
def test_labels_are_read_in_the_order_of_their_ids(copied, id2label, expected):
    folder = copied("classification", id2label=id2label)
    assert config_file.read(folder).labels == expected


def test_one_label_per_text_may_be_stated(copied):
    folder = copied("classification", problem_type="single_label_classification")
    assert config_file.read(folder).label_kind == "single_label"


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"]},
            "model_type roberta and the class RobertaForMaskedLM, which is not BERT",
        ),
        ({"model_type": ["bert"]}, "which is not BERT"),
        ({"model_type": None, "architectures": ["XLNetModel"]}, "which is not BERT"),
        ({"position_embedding_type": "relative_key"}, '"relative_key", which bert_tf'),
        ({"is_decoder": True}, "has is_decoder true"),
        ({"add_cross_attention": True}, "has add_cross_attention true"),
        ({"pruned_heads": {"0": [1]}}, "has pruned_heads"),
        ({"quantization_config": {"bits": 4}}, "use the model before quantization"),
        ({"hidden_act": "silu"}, 'hidden_act "silu", which bert_tf does not support'),
        ({"hidden_act": {"of": "lists"}}, "which bert_tf does not support"),
        ({"problem_type": ["ranks"]}, r'problem_type \["ranks"\], which .* one of'),
        ({"vocab_size": None}, r"config\.json: .* has no vocab_size"),
        ({"hidden_size": "16"}, "hidden_size of the model .* integer"),
        ({"num_attention_heads": 5}, "is not a multiple of num_attention_heads 5"),
        ({"layer_norm_eps": 0}, "layer_norm_epsilon of the model configuration must"),
        ({"id2label": ["a", "b"]}, "id2label must have the form"),
        ({"id2label": {"0": "a", "2": "b"}}, r"id2label has the ids \[0, 2\]"),
    ],
)
def test_what_is_no_bert_that_we_compute_is_refused_in_one_line(
    copied, changes, message
):
    folder = copied("encoder", **changes)
    with pytest.raises(ValueError, match=message) as error:
        hugging_face.open_source(folder)
    assert str(error.value).startswith(f"{folder}/config.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": None},  # 2019: an architecture, no model_type.
        {"model_type": None, "architectures": None},  # 2018: neither.
        {"position_embedding_type": "absolute"},  # 2020 to 2025.
        {"pruned_heads": {}, "torchscript": False, "use_bfloat16": False},  # 2019.
        {"gradient_checkpointing": False, "transformers_version": "4.6.0"},
    ],
)
def test_configurations_of_all_years_are_read(copied, changes):
    assert hugging_face.open_source(copied("encoder", **changes)).head.kind == "encoder"


@pytest.mark.parametrize(
    "text, message",
    [
        (b'{"model_type": "bert", ', r"config\.json is not JSON: .*; copy it again"),
        (b"", r"config\.json is not JSON"),
        (b"[1]", r"config\.json contains a JSON list, expected an object"),
        (b"\xff\xfe\x00", r"config\.json is not JSON"),
        (b"[" * 200_000, r"config\.json is not JSON: it is nested too deeply"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(copied, text, message):
    folder = copied("encoder")
    (folder / "config.json").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        hugging_face.open_source(folder)
