"""The configuration, and the sizes of the released models."""

import dataclasses
import json

import pytest

from bert_tf.modeling import config
from bert_tf.modeling import released

# bert_config.json of chinese_L-12_H-768_A-12, as released.
CHINESE = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
    "type_vocab_size": 2,
    "vocab_size": 21128,
}


def test_a_released_file_with_keys_that_nothing_reads_is_accepted(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(json.dumps(CHINESE), encoding="utf-8")
    read = config.BertConfig.from_json_file(path)
    assert read == config.BertConfig.named("bert-base-chinese")


def test_a_configuration_survives_its_own_text():
    original = config.BertConfig(vocab_size=9, hidden_act="gelu_erf")
    text = original.to_json_string()
    assert config.BertConfig.from_dict(json.loads(text)) == original
    assert "layer_norm_epsilon" not in text  # The release's reader does not know it.


def test_causal_attention_is_written_and_read_and_the_usual_one_left_out():
    causal = config.BertConfig(vocab_size=9, attention="causal")
    text = causal.to_json_string()
    assert json.loads(text)["attention"] == "causal"
    assert config.BertConfig.from_dict(json.loads(text)) == causal
    assert 'attention"' not in config.BertConfig(vocab_size=9).to_json_string()


def test_another_epsilon_is_written():
    original = config.BertConfig(vocab_size=9, layer_norm_epsilon=1e-5)
    assert json.loads(original.to_json_string())["layer_norm_epsilon"] == 1e-5


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"hidden_sizes": 8}, "Unknown key hidden_sizes"),
        ({"hidden_size": 10, "num_attention_heads": 3}, "not a multiple"),
        ({"vocab_size": 0}, "vocab_size .* at least 1, got 0"),
        ({"num_hidden_layers": 2.0}, "num_hidden_layers .* got 2.0"),
        ({"type_vocab_size": True}, "type_vocab_size .* got True"),
        ({"hidden_size": "768"}, "hidden_size .* got '768'"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob .* less than 1, got 1.0"),
        ({"attention_probs_dropout_prob": -0.1}, "attention_probs_dropout_prob"),
        ({"hidden_dropout_prob": None}, "hidden_dropout_prob .* got None"),
        ({"layer_norm_epsilon": 0.0}, "layer_norm_epsilon .* more than 0"),
        ({"initializer_range": 0.0}, "initializer_range .* more than 0"),
        ({"hidden_act": "swish"}, "Unknown activation 'swish'.* gelu_erf"),
        ({"hidden_act": None}, "Unknown activation None"),
        ({"attention": "both"}, "Unknown attention 'both'.* bidirectional, causal"),
    ],
)
def test_a_wrong_value_is_named(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        config.BertConfig.from_dict({"vocab_size": 30, **change})


def test_a_configuration_needs_a_vocabulary_size():
    with pytest.raises(ValueError, match="no vocab_size"):
        config.BertConfig.from_dict({"hidden_size": 12})


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("{", "is not JSON"),
        ("[1]", "holds a JSON list, expected an object"),
        ('{"vocab_size": 3, "depth": 2}', "bert_config.json: Unknown key depth"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, sentence):
    path = tmp_path / "bert_config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        config.BertConfig.from_json_file(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.json"):
        config.BertConfig.from_json_file(tmp_path / "absent.json")


def test_a_vocabulary_and_a_length_are_checked_against_the_tables():
    small = config.BertConfig(vocab_size=30, max_position_embeddings=16)
    small.check_vocabulary_size(30)
    small.check_sequence_length(16)
    with pytest.raises(ValueError, match=r"31 pieces.*vocab_size is 30"):
        small.check_vocabulary_size(31)
    with pytest.raises(ValueError, match=r"max_seq_length is 17.*at most 16"):
        small.check_sequence_length(17)


def test_there_are_33_released_models():
    assert len(released.MODELS) == 33
    assert sum(name.startswith("uncased_L-") for name in released.MODELS) == 24


@pytest.mark.parametrize(
    "name, sizes",
    [
        # layers, hidden, heads, intermediate, vocabulary
        ("bert-base-uncased", (12, 768, 12, 3072, 30522)),
        ("bert-large-cased", (24, 1024, 16, 4096, 28996)),
        ("bert-large-uncased-whole-word-masking", (24, 1024, 16, 4096, 30522)),
        ("bert-base-multilingual-cased", (12, 768, 12, 3072, 119547)),
        ("bert-base-multilingual-uncased", (12, 768, 12, 3072, 105879)),
        ("bert-tiny", (2, 128, 2, 512, 30522)),
        ("bert-mini", (4, 256, 4, 1024, 30522)),
        ("bert-small", (4, 512, 8, 2048, 30522)),
        ("bert-medium", (8, 512, 8, 2048, 30522)),
        ("uncased_L-10_H-512_A-8", (10, 512, 8, 2048, 30522)),
    ],
)
def test_a_released_model_has_its_sizes(name, sizes):
    named = config.BertConfig.named(name)
    assert sizes == (
        named.num_hidden_layers,
        named.hidden_size,
        named.num_attention_heads,
        named.intermediate_size,
        named.vocab_size,
    )


def test_every_released_model_has_a_valid_configuration_and_a_casing():
    for name, model in released.MODELS.items():
        named = config.BertConfig.named(name)
        assert dataclasses.asdict(named)["max_position_embeddings"] == 512
        assert model.do_lower_case == ("-cased" not in name)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'bert-huge'.*bert-base-cased.*bert-tiny"):
        config.BertConfig.named("bert-huge")


def test_a_named_size_may_have_a_vocabulary_of_its_own():
    changed = config.BertConfig.named("bert-tiny", vocab_size=2000)
    assert (changed.vocab_size, changed.hidden_size) == (2000, 128)
    with pytest.raises(ValueError, match="vocab_size"):
        config.BertConfig.named("bert-tiny", vocab_size=0)
