import hashlib
import os

import pytest

from bert_tf.tokenization import vocabulary as vocabulary_module

SPECIAL = vocabulary_module.SPECIAL_TOKENS
HEAD = "".join(f"{token}\n" for token in SPECIAL).encode()


def test_tokens_and_ids_are_looked_up_both_ways(golden):
    vocabulary = vocabulary_module.Vocabulary.load(golden / "vocab.txt")
    assert len(vocabulary) == 288
    assert vocabulary.tokens[:2] == ("[PAD]", "[unused1]")
    assert vocabulary["[MASK]"] == vocabulary.mask_id == 9
    assert vocabulary.tokens[9] == "[MASK]"
    assert (vocabulary.pad_id, vocabulary.unk_id) == (0, 6)
    assert (vocabulary.cls_id, vocabulary.sep_id) == (7, 8)
    assert "[MASK]" in vocabulary
    assert "mask" not in vocabulary
    assert list(vocabulary.ids.items())[9] == ("[MASK]", 9)


def test_the_fingerprint_is_of_all_tokens_in_order():
    text = "\n".join(SPECIAL).encode()
    expected = hashlib.sha256(text).hexdigest()
    assert vocabulary_module.Vocabulary(SPECIAL).fingerprint == expected
    turned = vocabulary_module.Vocabulary(SPECIAL[::-1])
    assert turned.fingerprint != expected


def test_a_saved_vocabulary_is_loaded_unchanged(tmp_path):
    vocabulary = vocabulary_module.Vocabulary([*SPECIAL, "\u2028", "##é"])
    vocabulary.save(tmp_path / "vocab.txt")
    loaded = vocabulary_module.Vocabulary.load(tmp_path / "vocab.txt")
    assert loaded.tokens == vocabulary.tokens


@pytest.mark.parametrize(
    "content, last",
    [
        (HEAD + b"a\n", "a"),
        (HEAD + b"a", "a"),  # No line end at the end.
        (HEAD + b" a \t\n", "a"),  # The release strips too.
        (b"\xef\xbb\xbf" + HEAD + b"a\n", "a"),  # A byte order mark.
        (HEAD + "\u2028\n".encode(), "\u2028"),  # Line 344 of the Chinese vocabulary.
    ],
)
def test_files_that_load(tmp_path, content, last):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    assert vocabulary_module.Vocabulary.load(path).tokens == (*SPECIAL, last)


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "vocab.txt: the file is empty; expected one token per line."),
        (HEAD + b"a\n\nb\n", "vocab.txt:7: empty line"),
        (HEAD + b"a\n  \n", "vocab.txt:7: empty line"),
        (HEAD + b"a\nb\na\n", "vocab.txt:8: token 'a' is already on line 6"),
        (HEAD + b"a\nb\na \n", "vocab.txt:8: token 'a' is already on line 6"),
        (HEAD.replace(b"\n", b"\r\n"), "vocab.txt:1: the line ends with CRLF"),
        (HEAD + b"a\r\n", "vocab.txt:6: the line ends with CRLF"),
        (HEAD + b"caf\xe9\n", r"vocab.txt:6: not UTF-8 \(byte 4 of the line\)"),
        (HEAD.replace(b"[SEP]\n", b""), r"vocab.txt: \[SEP\] missing among 4 tokens"),
        (b"the\nof\n", r"\[UNK\], \[CLS\], \[SEP\] missing among 2"),
    ],
)
def test_files_that_are_no_vocabulary_are_refused(tmp_path, content, sentence):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        vocabulary_module.Vocabulary.load(path)


def test_what_is_too_large_for_a_vocabulary_is_refused_unread(tmp_path):
    large, pipe = tmp_path / "large.txt", tmp_path / "pipe"
    with open(large, "wb") as file:
        file.truncate(100_000_001)  # A sparse file.
    os.mkfifo(pipe)  # Reading it would wait forever.
    for path, message in (
        (large, "has 100,000,001 bytes, too many for a vocabulary"),
        (pipe, "is a device or a pipe; expected a text file"),
        ("/dev/zero", "is a device or a pipe"),
    ):
        with pytest.raises(ValueError, match=message):
            vocabulary_module.Vocabulary.load(path)
    large.write_bytes(b"a\n" * 2_000_001)
    with pytest.raises(ValueError, match="has 2,000,001 lines, too many for a voc"):
        vocabulary_module.Vocabulary.load(large)


def test_without_pad_the_id_0_pads_and_without_mask_only_masked_words_are_refused():
    vocabulary = vocabulary_module.Vocabulary(
        ["a", "[UNK]", "[CLS]", "[SEP]"], source="own.txt"
    )
    assert vocabulary.pad_id == 0
    with pytest.raises(ValueError, match=r"own\.txt: \[MASK\] is missing among 4"):
        vocabulary.mask_id  # noqa: B018


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        vocabulary_module.Vocabulary.load(tmp_path / "vocab.txt")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        vocabulary_module.Vocabulary.load(tmp_path)


@pytest.mark.parametrize(
    "name, size",
    [
        ("bert-base-uncased", 30522),
        ("bert-base-cased", 28996),
        ("bert-base-multilingual-cased", 119547),
        ("bert-base-chinese", 21128),
    ],
)
def test_released_vocabularies_load_and_save_unchanged(shared, tmp_path, name, size):
    path = shared / "data" / "vocab" / name / "vocab.txt"
    vocabulary = vocabulary_module.Vocabulary.load(path)
    assert len(vocabulary) == size
    assert (vocabulary.unk_id, vocabulary.mask_id) == (100, 103)
    vocabulary.save(tmp_path / "vocab.txt")
    assert (tmp_path / "vocab.txt").read_bytes() == path.read_bytes()
