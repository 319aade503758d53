import tensorflow as tf

from bert_tf.serving import tag_signatures
from bert_tf.tokenization import words as words_module

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
        found = tag_signatures.TrueCasing(cases)(words)
        expected = [words_module.true_cased(words, cases) for words in SENTENCES]
        texts = [[text.decode() for text in row] for row in found.to_list()]
        assert texts == expected
