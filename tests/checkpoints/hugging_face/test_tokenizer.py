"""The tokenizer's files, read and written."""

import collections
import json

import pytest
import tokenizers

from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.hugging_face import tokenizer
from bert_tf.preprocessing import tokenizer as full_tokenizer
from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph
from bert_tf.tokenization import vocabulary as vocabulary_module

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a ##b"


def json_of(tokens, **changes):
    """Returns the text of a tokenizer.json such as transformers writes."""
    values = {
        "added_tokens": [{"id": 0, "content": "[PAD]", "special": True}],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "max_input_chars_per_word": 200,
            "vocab": {token: index for index, token in enumerate(tokens.split())},
        },
    }
    for path, value in changes.items():
        *above, last = path.split("__")
        part = values
        for key in above:
            part = part[key]
        part[last] = value
    return json.dumps(values)


def folder_of(tmp_path, *, vocabulary=None, whole=None, options=None, added=None):
    """Writes some of a tokenizer's files and returns their folder."""
    lines = vocabulary and "".join(f"{token}\n" for token in vocabulary.split())
    for name, text in {
        "vocab.txt": lines,
        "tokenizer.json": whole,
        "tokenizer_config.json": options,
        "added_tokens.json": added,
    }.items():
        if text is not None:
            text = text if isinstance(text, str) else json.dumps(text)
            (tmp_path / name).write_text(text)
    return tmp_path


E_TOKEN = [{"id": 7, "content": "<e>"}]


@pytest.mark.parametrize(
    "texts, added, do_lower_case",
    [
        # 2018 to 2025: the list, and options beside it.
        ({"vocabulary": PIECES, "options": {"do_lower_case": False}}, "", False),
        # Since version 5: only tokenizer.json has the vocabulary.
        ({"whole": json_of(PIECES)}, "", True),
        ({"whole": json_of(PIECES, normalizer__lowercase=False)}, "", False),
        ({"vocabulary": PIECES}, "", None),
        # Added tokens come after all other tokens, from either file.
        ({"whole": json_of(PIECES, added_tokens=E_TOKEN)}, " <e>", True),
        ({"vocabulary": PIECES, "added": {"<f>": 8, "<e>": 7}}, " <e> <f>", None),
        # The longer one, where one continues the other.
        (
            {"vocabulary": PIECES, "whole": json_of(PIECES + " <e>")},
            " <e>",
            True,
        ),
    ],
)
def test_vocabulary_and_casing_are_found(tmp_path, texts, added, do_lower_case):
    described = tokenizer.read(folder_of(tmp_path, **texts))
    assert described.text.vocabulary.tokens == tuple((PIECES + added).split())
    assert described.text.do_lower_case is do_lower_case


@pytest.mark.parametrize(
    "options, changes, warning",
    [
        ({}, {}, None),
        ({"strip_accents": None, "tokenize_chinese_chars": True}, {}, None),
        ({"tokenizer_class": "BertTokenizerFast"}, {}, None),
        # Settings that our tokenizers have.
        ({"strip_accents": False}, {}, None),
        ({"never_split": ["a"]}, {}, None),
        ({"do_lower_case": False}, {}, "has do_lower_case False, tokenizer.json the"),
        (
            {"tokenize_chinese_chars": False},
            {},
            "chars false; bert_tf treats",
        ),
        (
            {},
            {"normalizer__handle_chinese_chars": False},
            "chars false; bert_tf",
        ),
        (
            {},
            {"normalizer__clean_text": False},
            "clean_text false; bert_tf deletes",
        ),
        ({}, {"model__max_input_chars_per_word": 100}, "more than 100 characters"),
        ({"never_split": ["[MASK]", "<x>"]}, {}, "never_split has '<x>', which the"),
        (
            {"auto_map": {"AutoTokenizer": ["own.Tokenizer", None]}},
            {},
            "tokenizer_config.json names custom code (auto_map), which bert_tf does no",
        ),
        (
            {"do_basic_tokenize": False},
            {},
            "tokenize false; bert_tf splits",
        ),
        (
            {"split_special_tokens": True},
            {},
            "split_special_tokens true; bert_tf keeps",
        ),
        ({"padding_side": "left"}, {}, 'padding_side "left"; bert_tf pads on the '),
        (
            {"cls_token": {"content": "a"}},
            {},
            'has cls_token "a"; bert_tf supports only',
        ),
        ({"model_input_names": ["input_ids", "attention_mask"]}, {}, "token_type_ids"),
        (
            {},
            {"post_processor": {"single": [{"Sequence": {"id": "A", "type_id": 0}}]}},
            "The post_processor builds other rows than [CLS] A [SEP] B [SEP]",
        ),
        ({"tokenizer_class": "BertJapaneseTokenizer"}, {}, "a BertJapaneseTokenizer"),
        ({}, {"normalizer": {"type": "NFC"}}, "The normalizer is NFC and not BertNorm"),
        ({}, {"pre_tokenizer": None}, "The pre_tokenizer is None and not BertPreToken"),
        (
            {},
            {"added_tokens": [{"id": 5, "content": "a", "normalized": True}]},
            "keeps 'a' whole in upper and lower case, bert_tf only as written",
        ),
        (
            {"do_lower_case": False},
            {
                "normalizer__lowercase": False,
                "added_tokens": [
                    {"id": 5, "content": "a", "normalized": True, "single_word": True}
                ],
            },
            "keeps 'a' whole only as separate words, bert_tf also within words",
        ),
        ({}, {"added_tokens": [{"id": 9, "content": "<e>"}]}, "are left out: '<e>'"),
    ],
)
def test_options_that_change_ids_become_warnings(tmp_path, options, changes, warning):
    whole = json_of(PIECES, **changes)
    described = tokenizer.read(folder_of(tmp_path, whole=whole, options=options))
    found = (*described.warnings, *described.notes)
    assert len(found) == (warning is not None), found
    assert warning is None or warning in found[0]


@pytest.mark.parametrize(
    "options, changes",
    [
        ({"truncation_side": "left"}, {}),
        ({}, {"truncation": {"direction": "Left", "max_length": 9}}),
    ],
)
def test_texts_that_lose_their_beginning_are_refused(tmp_path, options, changes):
    whole = json_of(PIECES, **changes)
    folder = folder_of(tmp_path, whole=whole, options=options)
    for read in (tokenizer.read, full_tokenizer.FullTokenizer):
        with pytest.raises(ValueError, match=r"beginning \(truncation_side left\), b"):
            read(str(folder))


def test_a_length_under_its_old_name_and_added_tokens_of_the_options_are_read(tmp_path):
    added = {"7": {"content": "<e>"}, "0": {"content": "[PAD]"}}
    options = {"max_len": 64, "added_tokens_decoder": added}
    folder = folder_of(tmp_path, vocabulary=PIECES, options=options)
    described = tokenizer.read(folder)
    assert described.max_length == 64
    assert described.text.never_split == ("<e>",)


@pytest.mark.parametrize(
    "options, changes, strip_accents, never_split",
    [
        ({}, {}, None, ()),
        ({"strip_accents": True}, {}, None, ()),  # As do_lower_case has it anyway.
        ({"strip_accents": False}, {}, False, ()),
        ({}, {"normalizer__strip_accents": False}, False, ()),
        ({"never_split": ["a", "[MASK]"]}, {}, None, ("a",)),
        ({"additional_special_tokens": ["a", "<z>"]}, {}, None, ("a",)),
        ({"extra_special_tokens": [{"content": "a"}]}, {}, None, ("a",)),
        ({"extra_special_tokens": {"entity_token": "a"}}, {}, None, ("a",)),
        (
            {"never_split": ["a"]},
            {"added_tokens": [{"id": 7, "content": "<e>"}]},
            None,
            ("<e>", "a"),
        ),
    ],
)
def test_accents_and_tokens_that_stay_whole_are_read(
    tmp_path, options, changes, strip_accents, never_split
):
    whole = json_of(PIECES, **changes)
    described = tokenizer.read(folder_of(tmp_path, whole=whole, options=options))
    assert described.text.strip_accents is strip_accents
    assert described.text.never_split == never_split


def test_texts_get_the_ids_that_transformers_gives_them(foreign):
    folder = foreign / "own_tokenizer"
    start = starting_point.find(folder)
    arguments = start.tokenizer_arguments()
    assert arguments["never_split"] == ("<e1>", "</e1>")
    in_python = full.FullTokenizer(start.vocabulary, **arguments)
    in_graph_too = in_graph.InGraphTokenizer(start.vocabulary, **arguments)
    for text, ids in json.loads((folder / "ids.json").read_text()).items():
        expected = ids[1:-1]  # Without [CLS] and [SEP].
        pieces = in_python.tokenize(text)
        assert in_python.convert_tokens_to_ids(pieces) == expected
        assert in_graph_too.tokenize([text]).to_list() == [expected]


def test_another_kind_of_tokenizer_is_reported_and_not_used(tmp_path):
    text = json_of(PIECES, model={"type": "Unigram", "vocab": [["a", -1.5]]})
    described = tokenizer.read(folder_of(tmp_path, whole=text))
    assert described.text.vocabulary is None
    assert "is Unigram and not WordPiece" in described.warnings[0]


@pytest.mark.parametrize(
    "texts, message",
    [
        ({"vocabulary": "[PAD] [UNK] [CLS] [MASK] a"}, r"\[SEP\] missing"),
        (
            {
                "vocabulary": PIECES,
                "whole": json_of(PIECES.replace(" a ", " b ")),
            },
            r"vocab\.txt and tokenizer\.json disagree: token 5 is 'a' in one and 'b'",
        ),
        (
            {"whole": json_of("", model__vocab={"[PAD]": 0, "a": 2})},
            r"tokenizer\.json: the ids of its vocabulary are not 0, 1, 2",
        ),
        (
            {"whole": json_of(PIECES, added_tokens=["<e>"])},
            r"tokenizer\.json has an unexpected value of added_tokens\[0\]: '<e>'",
        ),
        ({"whole": "{"}, r"tokenizer\.json is not JSON"),
        ({"options": {"never_split": 7}}, "value of never_split: 7"),
        ({"options": {"never_split": [[]]}}, r"of never_split\[0\]"),
        ({"options": {"do_lower_case": "no"}}, "do_lower_case: 'no'"),
    ],
)
def test_files_that_are_no_tokenizer_are_refused(tmp_path, texts, message):
    with pytest.raises(ValueError, match=message) as error:
        tokenizer.read(folder_of(tmp_path, **texts))
    assert "\n" not in str(error.value)


# Written: the same ids in the library tokenizers.

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
    text = text_encoding.TextEncoding(
        vocabulary=words, do_lower_case=do_lower_case, **settings
    )
    whole = tokenizer.tokenizer_json(text)
    return tokenizers.Tokenizer.from_str(json.dumps(whole))


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"strip_accents": False},
        {"strip_accents": True},
        {"never_split": ("and", "é")},
    ],
)
def test_texts_have_the_same_ids_there(words, sample_data, do_lower_case, settings):
    ours = full.FullTokenizer(words, do_lower_case, **settings)
    lines = (sample_data / "corpus.txt").read_text().splitlines()
    texts = [*lines, *EDGES, "sandy band"]
    there = theirs(words, do_lower_case, **settings)
    for text, encoding in zip(
        texts, there.encode_batch(texts, add_special_tokens=False), strict=True
    ):
        pieces = ours.tokenize(text)
        assert encoding.tokens == pieces, text
        assert encoding.ids == ours.convert_tokens_to_ids(pieces)


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


def test_the_written_options_are_those_that_transformers_needs(tmp_path, words):
    text = text_encoding.TextEncoding(vocabulary=words, do_lower_case=False)
    tokenizer.write(tmp_path, text, 77)
    assert tokenizer.read(tmp_path).notes == ()
    options = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert options["model_max_length"] == 77
    assert options["cls_token"] == "[CLS]"
    # Without them a v5 tokenizer of this class gives no segments.
    assert "token_type_ids" in options["model_input_names"]
