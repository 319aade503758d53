"""The catalogue has exactly the released models."""

import re

import pytest

from bert_tf.checkpoints.catalogue import models
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import full

SIZE = re.compile(r"L-(\d+)_H-(\d+)_A-(\d+)$")


def test_there_are_33_models_each_with_a_url_of_its_own():
    assert len(models.MODELS) == 33
    assert len({entry.url for entry in models.MODELS.values()}) == 33


@pytest.mark.parametrize(
    "name, url",
    [
        ("bert-base-uncased", "2018_10_18/uncased_L-12_H-768_A-12.zip"),
        ("bert-large-uncased", "2018_10_18/uncased_L-24_H-1024_A-16.zip"),
        ("bert-base-cased", "2018_10_18/cased_L-12_H-768_A-12.zip"),
        ("bert-large-cased", "2018_10_18/cased_L-24_H-1024_A-16.zip"),
        (
            "bert-large-uncased-whole-word-masking",
            "2019_05_30/wwm_uncased_L-24_H-1024_A-16.zip",
        ),
        (
            "bert-large-cased-whole-word-masking",
            "2019_05_30/wwm_cased_L-24_H-1024_A-16.zip",
        ),
        ("bert-base-multilingual-cased", "2018_11_23/multi_cased_L-12_H-768_A-12.zip"),
        (
            "bert-base-multilingual-uncased",
            "2018_11_03/multilingual_L-12_H-768_A-12.zip",
        ),
        ("bert-base-chinese", "2018_11_03/chinese_L-12_H-768_A-12.zip"),
        ("bert-tiny", "2020_02_20/uncased_L-2_H-128_A-2.zip"),
        ("bert-mini", "2020_02_20/uncased_L-4_H-256_A-4.zip"),
        ("bert-small", "2020_02_20/uncased_L-4_H-512_A-8.zip"),
        ("bert-medium", "2020_02_20/uncased_L-8_H-512_A-8.zip"),
        ("uncased_L-10_H-768_A-12", "2020_02_20/uncased_L-10_H-768_A-12.zip"),
        # Names of released folders; this one there are two of.
        ("uncased_L-12_H-768_A-12", "2020_02_20/uncased_L-12_H-768_A-12.zip"),
        ("wwm_cased_L-24_H-1024_A-16", "2019_05_30/wwm_cased_L-24_H-1024_A-16.zip"),
        ("multi_cased_L-12_H-768_A-12", "2018_11_23/multi_cased_L-12_H-768_A-12.zip"),
        ("chinese_L-12_H-768_A-12", "2018_11_03/chinese_L-12_H-768_A-12.zip"),
    ],
)
def test_a_name_means_a_released_zip(name, url):
    base = "https://storage.googleapis.com/bert_models/"
    assert models.find(name).url == base + url
    assert models.is_name(name)


def test_folders_say_the_size_and_the_casing_that_the_catalogue_says():
    for name, entry in models.MODELS.items():
        size = tuple(map(int, SIZE.search(entry.folder).groups()))
        model = entry.model
        assert size == (model.num_layers, model.hidden_size, model.hidden_size // 64)
        assert full.is_lower_cased(entry.folder) is model.do_lower_case
        assert config_module.BertConfig.named(name).vocab_size == model.vocab_size


@pytest.mark.parametrize("name", ["bert-huge", "", "Bert-Base-Uncased", "../x"])
def test_an_unknown_name_gets_the_known_ones(name):
    assert not models.is_name(name)
    with pytest.raises(
        ValueError, match=r"expected one of bert-base-uncased, .*bert-tiny"
    ):
        models.find(name)
