"""Both tokenizers give the recorded ids, and agree on generated texts.

Half of the generated texts are mutated texts of the recorded cases, half are code
points drawn by category. The vocabulary is a released one where it is at hand, else the
small one.
"""

import gzip
import json
import random
import sys
import unicodedata

import pytest

from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module
from tests import ring

BATCH = 5000
LONGEST_MUTATED = 60
SURROGATES = range(0xD800, 0xE000)
# Unassigned in Unicode 14.0, letters, marks or controls since.
NEWER = "\u0897\u1c89\ua7cb\U0001e030\U00013439\U00011f43\U0001fae8\U000105c9"
MARKS = "\u0301\u0308\u0327\u0345\u0338\u200d\u200c\u00ad\ufeff\u302e\u1b44\U0001d165"
ODD = (
    "\x00\x01\x0b\x7f\x85\ufffd\u2028\u2029\u00a0\u3000\u200b"
    "ΣςİıIßﬁ½≠\u037e\u1fef\u0130\uac01한中\uf900𠀀。、’'·:.,#[]\U0001d15e"
    + MARKS
    + NEWER
)


def mutated(draw, texts):
    """Returns a piece of a recorded text with some characters changed."""
    text = draw.choice(texts)
    start = draw.randrange(max(1, len(text) - LONGEST_MUTATED + 1))
    characters = list(text[start : start + LONGEST_MUTATED])
    for _ in range(draw.randrange(6)):
        place = draw.randrange(len(characters) + 1)
        change = draw.randrange(4)
        if change == 0:
            characters.insert(place, draw.choice(ODD))
        elif change == 1:
            characters[place : place + 1] = []
        elif change == 2:
            characters[place:place] = characters[: draw.randrange(5)]
        else:
            characters[place:] = [c.swapcase() for c in characters[place:]]
    return "".join(characters)


def drawn(draw, categories):
    """Returns characters of random categories."""
    if draw.random() < 0.02:  # Around the limit of 200 characters a word.
        return draw.choice("aéЖ中\u0301") * draw.randrange(198, 203)
    length = draw.randrange(10)
    names = draw.choices(sorted(categories), k=length)
    return "".join(draw.choice(categories[name]) for name in names)


def corrupted(draw, text):
    """Returns a text's UTF-8 with some bytes changed."""
    data = bytearray(text.encode("utf-8"))
    for _ in range(draw.randrange(1, 4)):
        data.insert(draw.randrange(len(data) + 1), draw.randrange(256))
        del data[draw.randrange(len(data))]
    return bytes(data)


def generated_texts(number, texts, seed):
    draw = random.Random(seed)
    categories = {}
    for code in range(sys.maxunicode + 1):
        if code not in SURROGATES:
            name = unicodedata.category(chr(code))
            categories.setdefault(name, []).append(chr(code))
    for index in range(number):
        text = drawn(draw, categories) if index % 2 else mutated(draw, texts)
        yield corrupted(draw, text) if draw.random() < 0.03 else text


TOKENIZERS = [full.FullTokenizer, in_graph.InGraphTokenizer]


@pytest.mark.parametrize("tokenizer_class", TOKENIZERS)
@pytest.mark.parametrize("case", ["lower_cased", "cased"])
def test_recorded_ids_of_the_small_vocabulary(golden, case, tokenizer_class):
    tokenizer = tokenizer_class(golden / "vocab.txt", case == "lower_cased")
    lines = (golden / "tokenization.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    ids = all_ids(tokenizer, [row["text"] for row in rows])
    assert ids == [row["ids"][case] for row in rows]


@pytest.mark.parametrize("tokenizer_class", TOKENIZERS)
@pytest.mark.parametrize(
    "name, do_lower_case",
    [
        ("bert-base-uncased", True),
        ("bert-base-chinese", True),
        ("bert-base-cased", False),
        ("bert-base-multilingual-cased", False),
    ],
)
def test_recorded_ids_of_the_released_vocabularies(
    shared, name, do_lower_case, tokenizer_class
):
    path = shared / "data" / "vocab" / name / "vocab.txt"
    with gzip.open(shared / "golden" / "tokenization" / "cases.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    ids = all_ids(tokenizer_class(path, do_lower_case), [row["text"] for row in rows])
    assert len(ids) == 1012
    assert ids == [row["ids"][name] for row in rows]


@pytest.mark.long
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_both_tokenizers_agree_on_every_code_point(shared, do_lower_case):
    path = shared / "data" / "vocab" / "bert-base-multilingual-cased" / "vocab.txt"
    plain, ops = (tokenizer(path, do_lower_case) for tokenizer in TOKENIZERS)
    codes = [code for code in range(0x110000) if code not in range(0xD800, 0xE000)]
    for start in range(0, len(codes), 50_000):
        texts = [f"a{chr(code)}b {chr(code)}" for code in codes[start : start + 50_000]]
        rows = zip(texts, all_ids(ops, texts), all_ids(plain, texts), strict=True)
        assert [ascii(text) for text, row, expected in rows if row != expected] == []


def all_ids(tokenizer, texts):
    if isinstance(tokenizer, in_graph.InGraphTokenizer):
        return tokenizer.tokenize(texts).to_list()
    return [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(t)) for t in texts]


@pytest.fixture(scope="module")
def material(golden, request):
    """The recorded texts and a vocabulary: the released ones, or the small ones."""
    try:
        shared = request.getfixturevalue("shared")
    except pytest.skip.Exception:
        lines = (golden / "tokenization.jsonl").read_text(encoding="utf-8").splitlines()
        path = golden / "vocab.txt"
    else:
        name = shared / "golden" / "tokenization" / "cases.jsonl.gz"
        lines = gzip.decompress(name.read_bytes()).decode("utf-8").splitlines()
        path = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    texts = [json.loads(line)["text"] for line in lines]
    return texts, vocabulary_module.Vocabulary.load(path)


@pytest.mark.parametrize(
    "number, options",
    [
        ring.slow(21_000, {"do_lower_case": True}),
        pytest.param(102_000, {"do_lower_case": True}, marks=pytest.mark.long),
        ring.slow(9_000, {"do_lower_case": False}),
        ring.slow(9_000, {"do_lower_case": True, "strip_accents": False}),
        ring.slow(9_000, {"do_lower_case": False, "strip_accents": True}),
        ring.slow(
            9_000, {"do_lower_case": True, "never_split": ("[MASK]", "a", "##s")}
        ),
    ],
)
def test_both_tokenizers_give_the_same_ids(material, number, options):
    texts, vocabulary = material
    plain = full.FullTokenizer(vocabulary, **options)
    ops = in_graph.InGraphTokenizer(vocabulary, **options)
    generated = list(generated_texts(number, texts, seed=number))
    expected = all_ids(plain, generated)
    for start in range(0, number, BATCH):
        batch = slice(start, start + BATCH)
        ids = all_ids(ops, generated[batch])
        for text, row, row_expected in zip(
            generated[batch], ids, expected[batch], strict=True
        ):
            assert row == row_expected, ascii(text)
