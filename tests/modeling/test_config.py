"""The configuration, and the sizes of the released models."""

import json

import pytest

from bert_tf.checkpoints import companion_files
from bert_tf.modeling import bert
from bert_tf.modeling import config as config_module
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
    read = config_module.BertConfig.from_json_file(path)
    assert read == config_module.BertConfig.named("bert-base-chinese")


def test_a_configuration_survives_its_own_text():
    original = config_module.BertConfig(vocab_size=9, hidden_act="gelu_erf")
    text = original.to_json_string()
    assert config_module.BertConfig.from_dict(json.loads(text)) == original


@pytest.mark.parametrize(
    "name, value",
    [
        ("attention", "causal"),
        ("position_initializer", "sinusoidal"),
        ("layer_norm_epsilon", 1e-5),
    ],
)
def test_settings_unknown_to_the_release_are_written_only_where_they_differ(
    name, value
):
    changed = config_module.BertConfig(vocab_size=9, **{name: value})
    text = changed.to_json_string()
    assert json.loads(text)[name] == value
    assert config_module.BertConfig.from_dict(json.loads(text)) == changed
    assert f'{name}"' not in config_module.BertConfig(vocab_size=9).to_json_string()


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"hidden_sizes": 8}, "Unknown key hidden_sizes"),
        ({"hidden_size": 10, "num_attention_heads": 3}, "not a multiple"),
        ({"vocab_size": 0}, "vocab_size .* at least 1, got 0"),
        ({"num_hidden_layers": 2.0}, "num_hidden_layers .* got 2.0"),
        ({"hidden_size": "768"}, "hidden_size .* got '768'"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob .* less than 1, got 1.0"),
        ({"attention_probs_dropout_prob": -0.1}, "attention_probs_dropout_prob"),
        ({"layer_norm_epsilon": 0.0}, "layer_norm_epsilon .* more than 0"),
        ({"hidden_act": "swish"}, "Unknown activation 'swish'.* gelu_erf"),
        ({"hidden_act": ["gelu"]}, r"Unknown activation \['gelu'\]"),
        ({"hidden_dropout_prob": False}, "hidden_dropout_prob .* got False"),
        ({"attention": "both"}, "attention .* bidirectional, causal, got 'both'"),
        ({"position_initializer": "wave"}, "one of normal, sinusoidal, got 'wave'"),
    ],
)
def test_a_wrong_value_is_named(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        config_module.BertConfig.from_dict({"vocab_size": 30, **change})


def test_a_configuration_needs_a_vocabulary_size():
    with pytest.raises(ValueError, match="no vocab_size"):
        config_module.BertConfig.from_dict({"hidden_size": 12})


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("{", "is not JSON"),
        ("[1]", "contains a JSON list, expected an object"),
        ('{"vocab_size": 3, "depth": 2}', "bert_config.json: Unknown key depth"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, sentence):
    path = tmp_path / "bert_config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=sentence):
        config_module.BertConfig.from_json_file(path)


def test_a_vocabulary_and_a_length_are_checked_against_the_tables():
    small = config_module.BertConfig(vocab_size=30, max_position_embeddings=16)
    companion_files.check_vocabulary_size(small, 30)
    small.check_sequence_length(16)
    with pytest.raises(ValueError, match=r"31 pieces.*vocab_size is 30"):
        companion_files.check_vocabulary_size(small, 31)
    with pytest.raises(ValueError, match=r"max_seq_length is 17.*at most 16"):
        small.check_sequence_length(17)


@pytest.mark.parametrize(
    "name, sizes",
    [
        # layers, hidden, heads, intermediate, vocabulary
        ("bert-base-uncased", (12, 768, 12, 3072, 30522)),
        ("bert-tiny", (2, 128, 2, 512, 30522)),
        ("bert-mini", (4, 256, 4, 1024, 30522)),
        ("bert-small", (4, 512, 8, 2048, 30522)),
        ("bert-medium", (8, 512, 8, 2048, 30522)),
        ("bert-large-cased", (24, 1024, 16, 4096, 28996)),
        ("bert-large-uncased-whole-word-masking", (24, 1024, 16, 4096, 30522)),
        ("bert-base-multilingual-uncased", (12, 768, 12, 3072, 105879)),
        ("uncased_L-10_H-512_A-8", (10, 512, 8, 2048, 30522)),
    ],
)
def test_a_released_model_has_its_sizes(name, sizes):
    named = config_module.BertConfig.named(name)
    assert sizes == (
        named.num_hidden_layers,
        named.hidden_size,
        named.num_attention_heads,
        named.intermediate_size,
        named.vocab_size,
    )


@pytest.mark.parametrize("num_layers", [2, 4, 6, 8, 10, 12])
@pytest.mark.parametrize("hidden_size", [128, 256, 512, 768])
def test_the_24_small_sizes_are_those_of_the_release(num_layers, hidden_size):
    name, heads = f"L-{num_layers}_H-{hidden_size}", f"A-{hidden_size // 64}"
    size = config_module.BertConfig.of_size(name, vocab_size=30522)
    assert size == config_module.BertConfig.named(f"uncased_{name}_{heads}")
    assert size == config_module.BertConfig.of_size(f"{name}_{heads}", vocab_size=30522)


@pytest.mark.parametrize(
    "name, released_name",
    [
        *((size, f"bert-{size}") for size in ("tiny", "mini", "small", "medium")),
        *((size, f"bert-{size}-uncased") for size in ("base", "large")),
    ],
)
def test_a_size_with_a_name_is_that_of_the_released_model(name, released_name):
    size = config_module.BertConfig.of_size(name, vocab_size=30522)
    assert size == config_module.BertConfig.named(released_name)


def test_a_size_may_have_any_heads_that_divide_it():
    # Rows of the paper's Table 6.
    for heads in (3, 12):
        size = config_module.BertConfig.of_size(f"L-6_H-768_A-{heads}", vocab_size=9)
        assert (size.num_hidden_layers, size.num_attention_heads) == (6, heads)
    with pytest.raises(ValueError, match="not a multiple of num_attention_heads 5"):
        config_module.BertConfig.of_size("L-6_H-768_A-5", vocab_size=9)


def test_a_model_needs_heads_that_divide_its_size_and_a_configuration_does_not():
    config = config_module.BertConfig(vocab_size=99, hidden_size=37)
    values = json.loads(config.to_json_string())
    assert (values["vocab_size"], values["hidden_size"]) == (99, 37)
    for create in (lambda: bert.BertModel(config), lambda: config.from_dict(values)):
        with pytest.raises(ValueError, match="37 is not a multiple of num_attention_h"):
            create()


@pytest.mark.parametrize("name", ["huge", "L-0_H-128", "L-2_H-128_A-", "l-2_h-128"])
def test_an_unknown_size_is_refused_with_the_known_forms(name):
    with pytest.raises(ValueError, match=r"one of tiny, mini.*L-6_H-768_A-12"):
        released.values_of_size(name)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'bert-huge'.*bert-base-cased.*bert-tiny"):
        config_module.BertConfig.named("bert-huge")


def test_a_named_size_may_have_a_vocabulary_of_its_own():
    changed = config_module.BertConfig.named("bert-tiny", vocab_size=2000)
    assert (changed.vocab_size, changed.hidden_size) == (2000, 128)
    with pytest.raises(ValueError, match="vocab_size"):
        config_module.BertConfig.named("bert-tiny", vocab_size=0)
