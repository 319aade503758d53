"""Words and tags from a SavedModel are those of Python, for any text."""

import random

import pytest
import tensorflow as tf

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import predictors
from bert_tf.serving import tag_signatures
from bert_tf.tokenization import words as words_module
from tests import ring
from tests import runs

WORDS = (
    *("the", "rain", "Rod", "bread", "Lund", "hello,", "(1895-1943)", "crème"),
    *("(U.S.)", "Port-au-Prince", "ROD'S", "LUND’S", "Corp.", "J.", "?!", "b.--", "—"),
    *("中文字", "A.B.", "x\u00a0y", "\ufffd", "\x01", "é́", "İst", "x" * 30),
)


def texts(count):
    generator = random.Random(5)
    texts = ["", " \n", "\x01", "中文字" * 30, "x" * 300, "ROD GETS BREAD, LUND RAIN"]
    for _ in range(count):
        words = generator.choices(WORDS, k=generator.randint(1, 50))
        text = "".join(word + generator.choice((" ", "", "\n")) for word in words)
        texts.append(text.upper() if generator.random() < 0.3 else text)
    return texts


# Characters and words that are divided in different ways.
PIECES = (
    *"ab.'’-—…\"()“”，。「」!?$%&/,:;`~^ \t\n\u3000\u00a0",
    *"\u200b\u0301\0éßΣσİ1２中文・·あー😀\ufffd",
    *("U.S.", "e.g.", "John's", "Corp.", "'s", "’s", "...", "--", "''", "(a)", "J."),
    *("Ph.D.", "?!", " ", " ", " "),
)


@pytest.mark.parametrize(
    "whole_words",
    [
        ring.slow(()),
        ("'s", "Corp.", "?!", "(a)", "-1", "a.", "J.'s", "'a'", "'"),
    ],
)
def test_a_graph_finds_the_words_of_python(whole_words):
    generator = random.Random(7)
    asked = ["", *("".join(generator.choices(PIECES, k=n % 13)) for n in range(3000))]
    splitter = tag_signatures.WordSplitter(whole_words)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def split(texts):
        words = splitter(texts)
        return words.words, words.starts, words.ends

    columns = [column.to_list() for column in split(tf.constant(asked))]
    for text, words, starts, ends in zip(asked, *columns, strict=True):
        expected = words_module.split_text(text, frozenset(whole_words))
        assert tuple(word.decode() for word in words) == expected.words, text
        assert (tuple(starts), tuple(ends)) == (expected.starts, expected.ends), text


CASES = {"get": "get", "un": "UN", "win": "win", "été": "été", "οδος": "οδος"}
SENTENCES = [
    ["JAPAN", "GET", "LUCKY", "WIN"],
    ["Japan", "GET", "LUCKY", "WIN"],  # One word is not in capitals.
    ["JAPAN", "3", "A", "!"],  # One word of several letters.
    ["UN", "GET", "ÉTÉ", "3RD", "A"],
    ["ΟΔΟΣ", "ΣΟΦΟΣ", "ДОМ", "STRASSE", "ÇA"],
    ["İSTANBUL", "WIN"],
    ["中", "文"],
    ["ΟΔΟΣ-ΑΣ", "ΟΔΟΣ'Α", "Σ.", "ΑΣ\u0301.", "ΣΣ"],
    ["\u212a", "\u1e9eA", "\u2126Σ", "\u03f4A"],  # Kelvin, capital ß, ohm, theta.
    ["get", "win"],
    [],
]


def test_sentences_in_capitals_are_written_as_python_writes_them():
    words = tf.ragged.constant(SENTENCES, tf.string)
    for cases in (CASES, {}):
        rewritten = tag_signatures.TrueCasing(cases)(words)
        expected = [words_module.true_cased(words, cases) for words in SENTENCES]
        texts = [[text.decode() for text in row] for row in rewritten.to_list()]
        assert texts == expected


# In `make test`, the tests above compare words and capitals.
@pytest.mark.slow
@pytest.mark.parametrize(
    "task",
    [
        {},
        {"doc_stride": 1},
        {"doc_stride": 14},  # Windows that touch.
        {"do_lower_case": False, "true_cases": {"rain": "rain", "the": "The"}},
        {"whole_words": ("'S", "Corp.", "?!"), "tag_scheme": "none"},
    ],
    ids=str,
)
def test_a_saved_model_tags_as_python(write_run, tmp_path, task):
    run_dir = write_run("tags", tmp_path / "run", **task)
    asked = texts(30)
    expected = predictors.load(run_dir).predict(asked)
    folder = export.export_saved_model(run_dir, str(tmp_path / "export"))
    model = client.open_saved_model(folder)
    assert model.ask(text=asked) == expected
    expected_entities = predictors.load(run_dir).predict(asked, entities=True)
    with_entities = model.ask(text=asked, signature="entities")
    assert any(len(one["entities"]) > 1 for one in with_entities)
    runs.assert_close(with_entities, expected_entities)
    # Capitals decide something: without true-casing other tags come out.
    if "true_cases" in task:
        plain = write_run("tags", tmp_path / "plain", do_lower_case=False)
        assert predictors.load(plain).predict(asked) != expected
