import itertools
import json
import os
import random
import subprocess
import sys

import pytest
import tensorflow as tf

from bert_tf.tokenization import basic
from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import in_graph_words
from bert_tf.tokenization import vocabulary as vocabulary_module

SPECIAL = vocabulary_module.SPECIAL_TOKENS
LETTERS = ("é", "e", "ος", "中", "i", "i\u0307", "a")
VOCABULARY = vocabulary_module.Vocabulary(
    [*SPECIAL, "the", "cat", "##s", "##a", ".", "=", *LETTERS]
)

# Loads a SavedModel where bert_tf is not installed, and prints ids for each text.
LOADING_SCRIPT = """
import json, sys
import tensorflow as tf
import tensorflow_text
assert "bert_tf" not in sys.modules
tokenize = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
texts = json.loads(sys.stdin.read())
print(json.dumps(tokenize(tf.constant(texts))["ids"].numpy().tolist()))
"""


def tokens(tokenizer, texts):
    rows = tokenizer.tokenize(texts).to_list()
    return [[tokenizer.vocabulary.tokens[i] for i in row] for row in rows]


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_few_texts_have_the_same_ids_in_python(monkeypatch, most):
    monkeypatch.setattr(in_graph, "MAX_BYTES_IN_PYTHON", most)
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY, never_split=("[MASK]",))
    texts = ["The cats.", "", "THÉ ΟΣ≠[MASK]", "zz " + "a" * 201]
    ids = tokenizer.token_ids(texts)
    assert [[VOCABULARY.tokens[i] for i in row] for row in ids] == [
        ["the", "cat", "##s", "."],
        [],
        ["the", "ος", "=", "[MASK]"],
        ["[UNK]", "[UNK]"],
    ]
    with pytest.raises(UnicodeEncodeError):
        tokenizer.token_ids(["\ud800"])
    with pytest.raises(UnicodeEncodeError):
        tokenizer.token_ids(["the", "\ud800"])


TEXTS = (
    ("", []),
    ("The cats.", ["the", "cat", "##s", "."]),
    ("THÉ É", ["the", "e"]),
    ("thé\x00\u200d\ufffd cat\u2028s", ["the", "cat", "[UNK]"]),
    ("t\x00he", ["the"]),  # ASCII, but unusual.
    ("e≠e中中", ["e", "=", "e", "中", "中"]),
    ("ΟΣ ΟΣ.", ["ος", "ος", "."]),
    ("İ I", ["i", "i"]),
    ("a" * 200, ["a"] + ["##a"] * 199),
    ("a" * 201, ["[UNK]"]),
    ("á" * 200, ["a"] + ["##a"] * 199),  # Characters are counted, not bytes,
    ("á" * 201, ["[UNK]"]),
    ("a\u0301" * 200, ["a"] + ["##a"] * 199),  # and after normalization.
    ("[MASK]", ["[UNK]"] * 3),
    (b"th\xff\xc3\xa9 \xe4\xb8cats", ["the", "cat", "##s"]),
)


def test_texts_become_ids():
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY)
    texts, pieces = zip(*TEXTS, strict=True)
    assert tokens(tokenizer, list(texts)) == list(pieces)
    for text, expected in TEXTS[:4]:  # One by one.
        assert tokens(tokenizer, [text]) == [expected]


def test_accents_can_be_kept():
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY, strip_accents=False)
    assert tokens(tokenizer, ["THE É İ"]) == [["the", "é", "i\u0307"]]


def test_marks_that_remain_are_in_canonical_order():
    # Spacing marks of classes 224 and 216, in the wrong order.
    vocabulary = vocabulary_module.Vocabulary([*SPECIAL, "a\U0001d165\u302e"])
    tokenizer = in_graph.InGraphTokenizer(vocabulary)
    assert tokens(tokenizer, ["a\u302e\U0001d165"]) == [["a\U0001d165\u302e"]]


def test_without_tensorflow_text_the_ids_come_from_python(monkeypatch):
    monkeypatch.setattr(in_graph, "tf_text", None)
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY, never_split=("[MASK]",))
    assert tokens(tokenizer, ["The cats[MASK]", "", "THÉ ΟΣ≠"]) == [
        ["the", "cat", "##s", "[MASK]"],
        [],
        ["the", "ος", "="],
    ]
    with pytest.raises(ImportError, match="TensorFlow Text is not installed"):
        tf.function(tokenizer.tokenize, autograph=False)(tf.constant(["the"]))


def test_special_tokens_can_be_kept_whole():
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY, never_split=("[MASK]", "[SEP]"))
    texts = ["the [MASK]É.[SEP][MASK]", "", "[MASK]", b"[MA\xffSK]", "cat\x00s"]
    assert tokens(tokenizer, texts) == [
        ["the", "[MASK]", "e", ".", "[SEP]", "[MASK]"],
        [],
        ["[MASK]"],
        ["[MASK]"],
        ["cat", "##s"],
    ]


@pytest.mark.parametrize("strings", ["text", [["text"]]])
def test_what_is_no_vector_of_texts_is_refused(strings):
    with pytest.raises(ValueError, match=r"Expected texts of shape \[B\]"):
        in_graph.InGraphTokenizer(VOCABULARY).tokenize(strings)


def test_a_token_with_a_space_in_it_is_never_found():
    vocabulary = vocabulary_module.Vocabulary([*SPECIAL, "new york", "new", "york"])
    tokenizer = in_graph.InGraphTokenizer(vocabulary)
    assert tokens(tokenizer, ["new york", "néw york"]) == [["new", "york"]] * 2


@pytest.mark.parametrize("token", ["é" * 129, "##" + "a" * 257])
def test_a_token_that_tensorflow_text_cannot_hold_is_refused(token):
    with pytest.raises(ValueError, match="cannot use this vocabulary of 6 tokens"):
        in_graph.InGraphTokenizer(vocabulary_module.Vocabulary([*SPECIAL, token]))


def test_bytes_that_are_not_utf_8_are_dropped_as_python_drops_them():
    # Both sides of every border that UTF-8 draws between bytes.
    borders = b"a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0"
    borders += b"\xf1\xf3\xf4\xf5\xff"
    texts = [
        bytes(t) + b"e" for n in range(4) for t in itertools.product(borders, repeat=n)
    ]
    draw = random.Random(4)
    texts += [bytes(draw.choices(borders, k=6)) + b"e" for _ in range(20_000)]
    expected = [text.decode("utf-8", "ignore").encode() for text in texts]
    # Distinguished by their bytes: every character is unknown, so lengths show little.
    cleaned = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="ignore")
    assert cleaned.numpy().tolist() == expected
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY)
    assert tokenizer.tokenize(texts).to_list() == tokenizer.tokenize(expected).to_list()


def test_it_works_inside_tf_data_and_tf_function():
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY)
    texts = ["The cats", "é.", "中", ""]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(3)
    rows = [row for ids in dataset.map(tokenizer.tokenize) for row in ids.to_list()]
    assert rows == tokenizer.tokenize(texts).to_list()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def lengths(strings):
        return tokenizer.tokenize(strings).row_lengths()

    assert lengths(tf.constant(texts)).numpy().tolist() == [3, 2, 1, 0]
    assert lengths(tf.constant(texts[:1])).numpy().tolist() == [3]


class _Served(tf.Module):
    """A SavedModel's body: texts to padded ids."""

    def __init__(self, tokenizer):
        super().__init__()
        self._tokenizer = tokenizer

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(self, strings):
        return {"ids": self._tokenizer.tokenize(strings).to_tensor(default_value=-1)}


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "tr_TR.UTF-8"])
def test_a_saved_model_gives_the_same_ids_without_bert_tf_in_any_locale(
    golden, tmp_path, locale
):
    tokenizer = in_graph.InGraphTokenizer(golden / "vocab.txt")
    served = _Served(tokenizer)
    tf.saved_model.save(served, tmp_path / "model", signatures=served.serve)
    rows = (golden / "tokenization.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(row)["text"] for row in rows]
    texts += ["I TITLE é", "I TITLE", "İIıi ÎÏ", "ΌΣΟΣ ΣΑΣ", "", "\x00é\ufffd"]
    loaded = subprocess.run(
        [sys.executable, "-c", LOADING_SCRIPT, tmp_path / "model"],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": locale, "PYTHONPATH": ""},
    )
    plain = full.FullTokenizer(golden / "vocab.txt")
    expected = [plain.convert_tokens_to_ids(plain.tokenize(text)) for text in texts]
    ids = json.loads(loaded.stdout.splitlines()[-1])
    assert [[i for i in row if i >= 0] for row in ids] == expected


def test_a_large_batch_is_cut_into_parts_and_keeps_its_order():
    tokenizer = in_graph.InGraphTokenizer(VOCABULARY, never_split=["[MASK]"])
    texts = ["the cats.", "THÉ É", "", "a [MASK] ΟΣ", "中中"] * 60 + ["the"]
    assert len(texts) > in_graph.NUM_PARTS * in_graph.MIN_ROWS_PER_PART
    assert tokens(tokenizer, texts) == tokens(tokenizer, texts[:5]) * 60 + [["the"]]


LAST_ASSIGNED = 0x3134A  # In Unicode 14.0, apart from planes 14 to 16.
OPTIONS = list(itertools.product([True, False], repeat=2))


def becomes(table, code):
    """Returns what a code point alone becomes: a list of words."""
    start = table.entry_pages[code >> in_graph_words.PAGE_BITS]
    entry = int(table.entries[start + code % (1 << in_graph_words.PAGE_BITS)])
    if entry & (in_graph_words.SPACE | in_graph_words.DROPPED):
        return []
    value = entry >> in_graph_words.FLAG_BITS
    if entry & in_graph_words.SEVERAL:
        first, last = table.expansion_splits[value : value + 2]
        return ["".join(map(chr, table.expansions[first:last]))]
    return [chr(code + value)]


@pytest.mark.parametrize("do_lower_case, strip_accents", OPTIONS)
def test_every_code_point_becomes_what_the_plain_tokenizer_says(
    do_lower_case, strip_accents
):
    options = {"do_lower_case": do_lower_case, "strip_accents": strip_accents}
    table = in_graph_words.code_point_table(**options)
    tokenizer = basic.BasicTokenizer(**options)
    for code in range(in_graph_words.NUM_CODE_POINTS):
        if code > LAST_ASSIGNED and code % 64:
            continue  # Unassigned, variation selectors, private use: all alike.
        assert becomes(table, code) == tokenizer.tokenize(chr(code)), hex(code)


def test_the_tables_are_small_enough_for_every_saved_model():
    table = in_graph_words.code_point_table(do_lower_case=True, strip_accents=True)
    assert sum(array.nbytes for array in vars(table).values()) < 500_000
