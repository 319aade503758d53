"""The tokenizer's files, read: vocabulary, casing, and notes on other ids."""

import json

import pytest

from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints.hugging_face import tokenizer
from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] a ##b"


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


def folder_of(tmp_path, **texts):
    """Writes files: vocab_txt="..." becomes vocab.txt."""
    for name, text in texts.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    return tmp_path


def vocab_txt(tokens):
    return "\n".join(tokens.split()) + "\n"


@pytest.mark.parametrize(
    "texts, tokens, do_lower_case",
    [
        # 2018 to 2025: the list, and options beside it.
        (
            {
                "vocab__txt": vocab_txt(VOCABULARY),
                "tokenizer_config__json": '{"do_lower_case": false}',
            },
            VOCABULARY,
            False,
        ),
        # Since version 5: only tokenizer.json has the vocabulary.
        ({"tokenizer__json": json_of(VOCABULARY)}, VOCABULARY, True),
        (
            {"tokenizer__json": json_of(VOCABULARY, normalizer__lowercase=False)},
            VOCABULARY,
            False,
        ),
        ({"vocab__txt": vocab_txt(VOCABULARY)}, VOCABULARY, None),
        # Added tokens come after all other tokens, from either file.
        (
            {
                "tokenizer__json": json_of(
                    VOCABULARY, added_tokens=[{"id": 7, "content": "<e>"}]
                )
            },
            f"{VOCABULARY} <e>",
            True,
        ),
        (
            {
                "vocab__txt": vocab_txt(VOCABULARY),
                "added_tokens__json": '{"<f>": 8, "<e>": 7}',
            },
            f"{VOCABULARY} <e> <f>",
            None,
        ),
        # The longer one, where one continues the other.
        (
            {
                "vocab__txt": vocab_txt(VOCABULARY),
                "tokenizer__json": json_of(f"{VOCABULARY} <e>"),
            },
            f"{VOCABULARY} <e>",
            True,
        ),
    ],
)
def test_vocabulary_and_casing_are_found(tmp_path, texts, tokens, do_lower_case):
    described = tokenizer.read(folder_of(tmp_path, **texts))
    assert described.vocabulary.tokens == tuple(tokens.split())
    assert described.do_lower_case is do_lower_case


@pytest.mark.parametrize(
    "options, changes, warning",
    [
        ({}, {}, None),
        ({"strip_accents": None, "tokenize_chinese_chars": True}, {}, None),
        ({"strip_accents": True}, {}, None),  # As do_lower_case has it anyway.
        ({"tokenizer_class": "BertTokenizerFast"}, {}, None),
        # Settings that our tokenizers have.
        ({"strip_accents": False}, {}, None),
        ({"never_split": ["a"]}, {}, None),
        ({}, {"added_tokens": [{"id": 5, "content": "a"}]}, None),
        (
            {"do_lower_case": False},
            {},
            "has do_lower_case False, tokenizer.json the opposite",
        ),
        (
            {"tokenize_chinese_chars": False},
            {},
            "bert_tf treats every Chinese character as a word",
        ),
        ({}, {"normalizer__handle_chinese_chars": False}, "every Chinese character"),
        ({}, {"normalizer__clean_text": False}, "bert_tf deletes control characters"),
        (
            {},
            {"model__max_input_chars_per_word": 100},
            "of more than 100 characters to [UNK], bert_tf those of more than 200",
        ),
        (
            {"never_split": ["[MASK]", "<x>"]},
            {},
            "never_split has '<x>', which the vocabulary lacks",
        ),
        (
            {"auto_map": {"AutoTokenizer": ["own.Tokenizer", None]}},
            {},
            "tokenizer_config.json names custom code (auto_map), which bert_tf does no",
        ),
        ({"do_basic_tokenize": False}, {}, "bert_tf splits text at punctuation"),
        (
            {"tokenizer_class": "BertJapaneseTokenizer"},
            {},
            "The tokenizer is a BertJapaneseTokenizer",
        ),
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
        (
            {},
            {"added_tokens": [{"id": 9, "content": "<e>"}]},
            "do not follow the vocabulary's, so these tokens are left out: '<e>'",
        ),
    ],
)
def test_options_that_change_ids_become_warnings(tmp_path, options, changes, warning):
    folder = folder_of(
        tmp_path,
        tokenizer__json=json_of(VOCABULARY, **changes),
        tokenizer_config__json=json.dumps(options),
    )
    described = tokenizer.read(folder)
    found = (*described.warnings, *described.notes)
    assert len(found) == (warning is not None), found
    assert warning is None or warning in found[0]


@pytest.mark.parametrize(
    "options, changes, strip_accents, never_split",
    [
        ({}, {}, None, ()),
        ({"strip_accents": True}, {}, None, ()),  # As do_lower_case has it anyway.
        ({"strip_accents": False}, {}, False, ()),
        ({}, {"normalizer__strip_accents": False}, False, ()),
        ({"never_split": ["a", "[MASK]"]}, {}, None, ("a",)),
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
    folder = folder_of(
        tmp_path,
        tokenizer__json=json_of(VOCABULARY, **changes),
        tokenizer_config__json=json.dumps(options),
    )
    described = tokenizer.read(folder)
    assert described.strip_accents is strip_accents
    assert described.never_split == never_split


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
    text = json_of(VOCABULARY, model={"type": "Unigram", "vocab": [["a", -1.5]]})
    described = tokenizer.read(folder_of(tmp_path, tokenizer__json=text))
    assert described.vocabulary is None
    assert "is Unigram and not WordPiece" in described.warnings[0]


@pytest.mark.parametrize(
    "texts, message",
    [
        (
            {"vocab__txt": vocab_txt("[PAD] [UNK] [CLS] [MASK] a")},
            r"vocab\.txt: \[SEP\] missing among 5 tokens",
        ),
        (
            {"tokenizer__json": json_of("[PAD] [UNK] [CLS] [MASK] a")},
            r"tokenizer\.json: \[SEP\] missing",
        ),
        (
            {
                "vocab__txt": vocab_txt(VOCABULARY),
                "tokenizer__json": json_of(VOCABULARY.replace(" a ", " b ")),
            },
            r"vocab\.txt and tokenizer\.json disagree: token 5 is 'a' in one and 'b'",
        ),
        (
            {"tokenizer__json": json_of("", model__vocab={"[PAD]": 0, "a": 2})},
            r"tokenizer\.json: the ids of its vocabulary are not 0, 1, 2",
        ),
        (
            {"tokenizer__json": json_of("", model__vocab={"[PAD]": 0, "a": "1"})},
            r"tokenizer\.json: the ids of its vocabulary are not 0, 1, 2",
        ),
        (
            {"tokenizer__json": json_of(VOCABULARY, added_tokens=["<e>"])},
            r"tokenizer\.json: added_tokens is not a list of tokens with id",
        ),
        ({"tokenizer__json": "{"}, r"tokenizer\.json is not JSON"),
        (
            {"tokenizer_config__json": '{"never_split": 7}'},
            r"tokenizer_config\.json has an unexpected value of never_split: 7;",
        ),
        (
            {"tokenizer_config__json": '{"never_split": [[]]}'},
            r"tokenizer_config\.json has an unexpected value of never_split\[0\]: ",
        ),
        (
            {"tokenizer_config__json": '{"do_lower_case": "no"}'},
            r"tokenizer_config\.json has an unexpected value of do_lower_case: 'no';",
        ),
        (
            {"tokenizer_config__json": "[]"},
            r"tokenizer_config\.json contains a JSON list",
        ),
        ({"vocab__txt": "[PAD]\r\n"}, r"vocab\.txt:1: the line ends with CRLF"),
    ],
)
def test_files_that_are_no_tokenizer_are_refused(tmp_path, texts, message):
    with pytest.raises(ValueError, match=message) as error:
        tokenizer.read(folder_of(tmp_path, **texts))
    assert "\n" not in str(error.value)


def test_the_vocabulary_of_transformers_5_comes_from_tokenizer_json(foreign):
    assert not (foreign / "encoder" / "vocab.txt").exists()
    source = hugging_face.open_source(foreign / "encoder")
    assert source.vocabulary.tokens[-3:] == ("1", "##2", "3")
    assert source.notes == (
        "Hugging Face's tokenizer maps words of more than 100 characters to [UNK], "
        "bert_tf those of more than 200.",
    )
