"""The tokenizer's files, written: the same ids in the library tokenizers."""

import collections
import json

import pytest
import tokenizers

from bert_tf.checkpoints.hugging_face import tokenizer
from bert_tf.checkpoints.hugging_face import tokenizer_files
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

NUM_WORDS = 400
EDGES = [
    "",
    " \t\n",
    "don't stop! $5^2 `x` a_b",
    "Café, CAFÉ and cafe\u0301",  # Composed and decomposed.
    "İstanbul, ẞ, ﬁne, ½, Ⅷ, ⓐ",  # Not folded, only lowercased.
    "ｆｕｌｌ，ｗｉｄｔｈ …",
    "你好world世界 カタカナ 한국어",
    "a\u00adb\u200bc\u0000d\ufffde",  # Deleted; what is around them joins.
    "x\u00a0y\u3000z\u2028u\u2029v",
    "Ñandú ünï Łódź Ωμέγα Привет",
    "😀👍🏽 नमस्ते สวัสดี",
]


@pytest.fixture(scope="module")
def words(sample_data):
    """A vocabulary of the sample text: its characters and its most frequent words."""
    text = (sample_data / "corpus.txt").read_text()
    characters = sorted(set(f"{text}{''.join(EDGES)}éñüïłóźωμεγαприветistanbulß"))
    characters = [c for c in characters if full.FullTokenizer(LETTERS).tokenize(c)]
    found = collections.Counter(text.split() + text.lower().split())
    tokens = [*vocabulary_module.SPECIAL_TOKENS, *characters]
    tokens += [f"##{character}" for character in characters]
    tokens += [word for word, _ in found.most_common(NUM_WORDS)]
    return vocabulary_module.Vocabulary(dict.fromkeys(tokens))


LETTERS = vocabulary_module.Vocabulary([*vocabulary_module.SPECIAL_TOKENS, "a"])


def theirs(words, do_lower_case, **settings):
    whole = tokenizer_files.tokenizer_json(words, do_lower_case, **settings)
    return tokenizers.Tokenizer.from_str(json.dumps(whole))


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
    "settings",
    [{"strip_accents": False}, {"strip_accents": True}, {"never_split": ("and", "é")}],
)
def test_accents_and_whole_tokens_are_the_same_there(words, do_lower_case, settings):
    ours = full.FullTokenizer(words, do_lower_case, **settings)
    found = theirs(words, do_lower_case, **settings).encode_batch(
        [*EDGES, "sandy band"], add_special_tokens=False
    )
    for text, encoding in zip([*EDGES, "sandy band"], found, strict=True):
        assert encoding.tokens == ours.tokenize(text), text


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_texts_have_the_same_ids_there(words, sample_data, do_lower_case):
    ours = full.FullTokenizer(words, do_lower_case)
    lines = (sample_data / "corpus.txt").read_text().splitlines()
    found = theirs(words, do_lower_case).encode_batch(
        [*lines, *EDGES], add_special_tokens=False
    )
    for text, encoding in zip([*lines, *EDGES], found, strict=True):
        pieces = ours.tokenize(text)
        assert encoding.tokens == pieces, text
        assert encoding.ids == ours.convert_tokens_to_ids(pieces)


@pytest.mark.parametrize(
    "text, ours, there",
    [
        ("[MASK] a", ["[UNK]", "[UNK]", "[UNK]", "a"], ["[MASK]", "a"]),
        ("ΣΑΣ", ["σ", "##α", "##ς"], ["[UNK]"]),  # It knows no ##σ here.
        ("a\ue000", ["[UNK]"], ["a"]),  # Private use.
    ],
)
def test_where_the_two_differ_is_known(text, ours, there):
    tokens = vocabulary_module.Vocabulary(
        [*vocabulary_module.SPECIAL_TOKENS, "a", "σ", "##α", "##ς"]
    )
    assert full.FullTokenizer(tokens).tokenize(text) == ours
    found = theirs(tokens, do_lower_case=True).encode(text, add_special_tokens=False)
    assert found.tokens == there


def test_pairs_get_their_special_tokens_and_segments():
    # Special tokens need not come first: released vocabularies have [CLS] at 101.
    tokens = vocabulary_module.Vocabulary(
        ["[PAD]", "a", "b", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    )
    found = theirs(tokens, do_lower_case=True).encode("a b", "b")
    assert found.ids == [4, 1, 2, 5, 2, 5]
    assert found.type_ids == [0, 0, 0, 0, 1, 1]
    assert theirs(tokens, do_lower_case=True).encode("a").ids == [4, 1, 5]
    assert theirs(tokens, do_lower_case=True).decode([1, 2]) == "a b"


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_what_is_written_is_read_again_without_a_note(tmp_path, words, do_lower_case):
    tokenizer_files.write(tmp_path, words, do_lower_case, 77)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    read = tokenizer.read(tmp_path)
    assert read.vocabulary.tokens == words.tokens
    assert read.do_lower_case is do_lower_case
    assert read.notes == ()
    options = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert options["model_max_length"] == 77
    assert options["cls_token"] == "[CLS]"
    # Without them a v5 tokenizer of this class gives no segments.
    assert "token_type_ids" in options["model_input_names"]
