import pytest

from bert_tf.tokenization import basic


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("  a\tb\n\rc  ", ["a", "b", "c"]),
        ("a\u00a0b\u3000c\u2028d\u2029e", ["a", "b", "c", "d", "e"]),
        ("", []),
        (" \t ", []),
        ("\u0301", []),  # An accent alone leaves nothing.
        ("a\x00b\ufffdc\u200dd", ["abcd"]),  # Deleted, not spaces.
        ("a\x0bb", ["ab"]),
        ("中文ab字", ["中", "文", "ab", "字"]),
        ("한국어", ["\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165"]),
        ("don't", ["don", "'", "t"]),
        ("Héllo ÀÉ", ["hello", "ae"]),
        ("a≠b", ["a", "=", "b"]),  # The stroke is an accent, "=" is punctuation.
        ("，…", ["，", "…"]),  # Full-width forms stay.
        ("[MASK]", ["[", "mask", "]"]),
        ("ΌΣΟΣ,ΌΣ", ["οσος", ",", "ος"]),  # Final sigma before a comma.
    ],
)
def test_lower_cased_text(text, tokens):
    assert basic.BasicTokenizer().tokenize(text) == tokens


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("Héllo ÀÉ", ["Héllo", "ÀÉ"]),
        ("a≠b", ["a≠b"]),
        ("a\u00adb", ["ab"]),
        ("中A文", ["中", "A", "文"]),
    ],
)
def test_cased_text(text, tokens):
    assert basic.BasicTokenizer(do_lower_case=False).tokenize(text) == tokens


def test_accents_are_kept_on_request():
    tokenizer = basic.BasicTokenizer(strip_accents=False)
    assert tokenizer.tokenize("HÉLLO a≠b") == ["héllo", "a≠b"]


def test_accents_alone_are_stripped_on_request():
    tokenizer = basic.BasicTokenizer(do_lower_case=False, strip_accents=True)
    assert tokenizer.tokenize("HÉLLO Àb") == ["HELLO", "Ab"]


def test_given_tokens_are_never_split():
    tokenizer = basic.BasicTokenizer(never_split=("[MASK]", "[MASK]s", "İx"))
    text = "A[MASK]b, [MASK]s [mask] İx."
    tokens = ["a", "[MASK]", "b", ",", "[MASK]s", "[", "mask", "]", "İx", "."]
    assert tokenizer.tokenize(text) == tokens


@pytest.mark.parametrize("never_split", ["[MASK]", ("",), (b"[MASK]",)])
def test_what_is_not_a_list_of_texts_is_refused_as_never_split(never_split):
    with pytest.raises(ValueError, match="never_split: expected"):
        basic.BasicTokenizer(never_split=never_split)


def test_bytes_that_are_not_utf_8_are_dropped():
    assert basic.BasicTokenizer().tokenize(b"caf\xc3\xa9 a\xffb") == ["cafe", "ab"]


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="Expected text as str or bytes, got int"):
        basic.BasicTokenizer().tokenize(7)
