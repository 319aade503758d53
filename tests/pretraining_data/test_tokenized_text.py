import gzip
import json

import numpy as np
import pytest

from bert_tf.pretraining_data import tokenized_text
from bert_tf.tokenization import basic
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module


def test_ids_are_those_of_the_tokenizer(golden):
    vocabulary = vocabulary_module.Vocabulary.load(golden / "vocab.txt")
    with (golden / "tokenization.jsonl").open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    assert_same(vocabulary, True, texts)
    assert_same(vocabulary, False, texts)


@pytest.mark.parametrize(
    "name, do_lower_case",
    [
        ("bert-base-uncased", True),
        ("bert-base-cased", False),
        ("bert-base-chinese", True),
        ("bert-base-multilingual-cased", False),
    ],
)
def test_ids_are_those_of_the_tokenizer_on_recorded_texts(shared, name, do_lower_case):
    vocabulary = vocabulary_module.Vocabulary.load(
        shared / "data" / "vocab" / name / "vocab.txt"
    )
    path = shared / "golden" / "tokenization" / "cases.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    assert_same(vocabulary, do_lower_case, texts)


def test_plain_text_is_split_at_blanks_as_any_text_is():
    plain = [
        chr(code)
        for code in range(0x3000)
        if tokenized_text._PLAIN_TEXT.fullmatch(chr(code)) and code != ord(" ")
    ]
    assert set("éßΩжế–“‰€→") <= set(plain)
    text = " ".join(f"a{character}b" for character in plain)
    assert text.split() == basic.split_words(text)
    assert len(text.split()) == len(plain)


def test_words_are_forgotten_when_they_are_too_many(golden, monkeypatch):
    monkeypatch.setattr(tokenized_text, "_MAX_WORDS", 3)
    vocabulary = vocabulary_module.Vocabulary.load(golden / "vocab.txt")
    table = tokenized_text.WordTable(vocabulary, True)
    sentences = ["one two three four five", "six one two"]
    first = table.tokenize(sentences)
    second = table.tokenize(sentences)
    np.testing.assert_array_equal(first.ids, second.ids)
    assert len(table._numbers) == 6 + 2  # The end of a sentence and others.


def test_a_batch_ends_with_the_sentence_that_fills_it(golden, monkeypatch):
    monkeypatch.setattr(tokenized_text, "_CHARACTERS_PER_CALL", 10)
    vocabulary = vocabulary_module.Vocabulary.load(golden / "vocab.txt")
    table, told = tokenized_text.WordTable(vocabulary, True), []
    documents = [["one two"] * 300, ["three"]]
    text = tokenized_text.tokenize_documents(documents, table, told.append)
    assert told == [*range(14, 2100, 14), 2100, 2105]
    assert text.document_starts.tolist() == [0, 300, 301]


def assert_same(vocabulary, do_lower_case, texts):
    tokenizer = full.FullTokenizer(vocabulary, do_lower_case)
    expected = [tokenizer.tokenize(text) for text in texts]
    table = tokenized_text.WordTable(vocabulary, do_lower_case)
    pieces = table.tokenize(texts)
    assert pieces.counts.tolist() == [len(tokens) for tokens in expected]
    assert pieces.ids.tolist() == [
        vocabulary.ids[token] for tokens in expected for token in tokens
    ]
