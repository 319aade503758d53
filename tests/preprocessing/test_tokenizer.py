import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import formats
from bert_tf.data import packing


def settings(tokenizer):
    basic = tokenizer.basic_tokenizer
    return basic.do_lower_case, basic.strip_accents, basic.never_split


@pytest.mark.parametrize("texts_b", [None, ["cats", "", "the " * 20]])
def test_a_call_returns_what_pack_returns(golden, texts_b):
    tokenizer = bert_tf.FullTokenizer(golden / "vocab.txt")
    texts = ["the rain", "the " * 20, ""]
    features = tokenizer(texts, texts_b, max_seq_length=12)
    expected = packing.pack(tokenizer, texts, texts_b=texts_b, max_seq_length=12)
    assert list(features) == list(expected)
    for name, column in expected.items():
        np.testing.assert_array_equal(features[name], column)


def test_without_a_length_rows_are_as_long_as_the_longest_text_needs(hugging_face):
    tokenizer = bert_tf.FullTokenizer(hugging_face / "encoder")
    assert tokenizer.max_seq_length == 20  # The model's positions.
    assert tokenizer(iter(["the cat sat", "a"]))["input_ids"].tolist() == [
        [2, 5, 6, 7, 3],
        [2, 10, 3, 0, 0],
    ]
    assert tokenizer(["the " * 50])["input_ids"].shape == (1, 20)
    assert tokenizer([])["input_ids"].shape == (0, 0)


def test_a_vocabulary_is_read_as_in_2018(golden):
    tokenizer = bert_tf.FullTokenizer(str(golden / "vocab.txt"))
    assert settings(tokenizer) == (True, True, ())
    cased = bert_tf.FullTokenizer(tokenizer.vocabulary, False, never_split=["[MASK]"])
    assert settings(cased) == (False, False, ("[MASK]",))
    with pytest.raises(ValueError, match="pass max_seq_length"):
        tokenizer(["rain"])


@pytest.mark.parametrize(
    "name, task, expected",
    [
        ("uncased_L-2_H-16_A-2", None, (True, True, ())),
        ("cased_L-2_H-16_A-2", None, (False, False, ())),
        ("mine", {"do_lower_case": False}, (False, False, ())),
        ("mine", {"do_lower_case": True, "strip_accents": False}, (True, False, ())),
        (
            "mine",
            {"do_lower_case": True, "never_split": ["[MASK]"]},
            (True, True, ("[MASK]",)),
        ),
        # Nothing says it, and the vocabulary has no cased pieces.
        ("mine", None, (True, True, ())),
    ],
)
@pytest.mark.parametrize("part", ["folder", "prefix", "tokenizer alone"])
def test_a_folder_decides_how_text_is_split(released, part, name, task, expected):
    source = released(name, task)
    if part == "prefix":
        source = source / "bert_model.ckpt"
    elif part == "tokenizer alone":
        for path in source.glob("*.ckpt.*"):
            path.unlink()
    tokenizer = bert_tf.FullTokenizer(source)
    assert settings(tokenizer) == expected
    assert tokenizer.max_seq_length == 64


def test_every_kind_of_source_gives_the_same_tokenizer(hugging_face, tmp_path):
    folder = hugging_face / "own_tokenizer"  # Keeps accents and the tokens <e1>, </e1>.
    alone = tmp_path / "tokenizer"
    pickled = tmp_path / "pickled"
    for target in (alone, pickled):
        shutil.copytree(folder, target, ignore=lambda *_: ["model.safetensors"])
    (alone / "config.json").unlink()
    (pickled / "pytorch_model.bin").write_bytes(b"pickled")
    expected = bert_tf.FullTokenizer(folder)
    assert settings(expected) == (True, False, ("</e1>", "<e1>"))
    for source in (
        str(folder),
        folder / "model.safetensors",
        formats.open_source(folder),
        expected,
        alone,
        pickled,
    ):
        tokenizer = bert_tf.FullTokenizer(source)
        assert settings(tokenizer) == settings(expected)
        assert tokenizer.vocabulary.tokens == expected.vocabulary.tokens
        assert tokenizer.tokenize("THE <e1>é</e1>") == expected.tokenize(
            "THE <e1>é</e1>"
        )


def test_a_name_is_looked_up(released, monkeypatch):
    folder = released("cased_L-2_H-16_A-2")
    monkeypatch.setattr(formats.fetching, "fetch", lambda name: str(folder))
    tokenizer = bert_tf.FullTokenizer("bert-base-cased")
    assert settings(tokenizer) == (False, False, ())


def test_tokens_to_keep_whole_are_added_to_those_of_the_folder(hugging_face):
    tokenizer = bert_tf.FullTokenizer(
        hugging_face / "own_tokenizer", never_split=["[MASK]"]
    )
    assert tokenizer.basic_tokenizer.never_split == ("[MASK]", "</e1>", "<e1>")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"do_lower_case": False}, "do_lower_case=False, but .* lowercased text; pass"),
        ({"strip_accents": False}, "strip_accents=False, but .* without accents; omit"),
    ],
)
def test_an_argument_that_contradicts_the_folder_is_refused(
    released, arguments, message
):
    folder = released("uncased_L-2_H-16_A-2")
    with pytest.raises(ValueError, match=message):
        bert_tf.FullTokenizer(folder, **arguments)
    with pytest.raises(ValueError, match=message):
        bert_tf.FullTokenizer(bert_tf.FullTokenizer(folder), **arguments)


def test_the_length_of_a_tokenizer_alone_is_the_one_in_its_options(
    hugging_face, tmp_path
):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(hugging_face / "encoder" / name, tmp_path)
    path = tmp_path / "tokenizer_config.json"
    options = json.loads(path.read_text())
    for stated, expected in ((12, 12), (1e30, None)):
        path.write_text(json.dumps({**options, "model_max_length": stated}))
        assert bert_tf.FullTokenizer(tmp_path).max_seq_length == expected


def test_what_is_no_tokenizer_gets_a_clear_line(released, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file: .*vocab\.txt"):
        bert_tf.FullTokenizer(tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match="of an unknown format; expected one of"):
        bert_tf.FullTokenizer(tmp_path)
    with pytest.raises(ValueError, match="opened Source or a FullTokenizer, got int"):
        bert_tf.FullTokenizer(3)
    folder = released("uncased_L-2_H-16_A-2")
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    (folder / "vocab.txt").write_text("\n".join(lines[:-1]), encoding="utf-8")
    with pytest.raises(ValueError, match="287 pieces, but its embedding table has 288"):
        bert_tf.FullTokenizer(folder)
    (folder / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"has no vocabulary; expected a vocab\.txt"):
        bert_tf.FullTokenizer(folder)


def test_decode_joins_pieces_and_can_leave_out_special_tokens(tmp_path):
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nsit\n##ting\n.\nhe\n")
    tokenizer = bert_tf.FullTokenizer(vocab_file=vocab)
    ids = tokenizer(["He sitting."], max_seq_length=7)["input_ids"][0]
    assert tokenizer.decode(ids) == "[CLS] he sitting. [SEP] [PAD]"
    assert tokenizer.decode(ids, skip_special_tokens=True) == "he sitting."
