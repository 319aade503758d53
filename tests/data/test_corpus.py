import itertools
import logging
import random

import pytest

from bert_tf.data import corpus as data_corpus


@pytest.fixture(autouse=True, params=[7, 1 << 20])
def block_bytes(request, monkeypatch):
    monkeypatch.setattr(data_corpus, "_BLOCK_BYTES", request.param)


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def documents_of(shards):
    return [document for shard in shards for document in data_corpus.read_shard(shard)]


@pytest.mark.parametrize(
    "text, documents",
    [
        ("a\nb\n\nc\n", [["a", "b"], ["c"]]),
        ("\n\na\n\n\nb", [["a"], ["b"]]),  # Empty documents are none.
        ("  a b\t\r\n \t\r\nc\r\n", [["a b"], ["c"]]),  # Lines are stripped.
        ("a\n\u3000\u00a0\nb\n\u2028\nc", [["a"], ["b"], ["c"]]),  # Any white space.
        ("a\fb\x1cc\u2028d\x85e\n", [["a\fb\x1cc\u2028d\x85e"]]),  # Lines end at \n.
        ("", []),
        ("\n \n", []),
    ],
)
def test_documents_are_cut_at_blank_lines(tmp_path, text, documents):
    assert list(data_corpus.read_documents([write(tmp_path / "a", text)])) == documents


def test_a_document_goes_on_in_the_next_file(tmp_path):
    paths = [write(tmp_path / "a", "a\n\nb"), write(tmp_path / "b", "c\n\nd\n")]
    assert list(data_corpus.read_documents(paths)) == [["a"], ["b", "c"], ["d"]]
    assert documents_of(data_corpus.shards(paths, 1)) == [["a"], ["b", "c"], ["d"]]


def test_shards_hold_every_document_once_and_in_order(tmp_path):
    numbers = random.Random(0)
    paths = []
    for name in "abc":
        text = "".join(
            "".join("ä" * numbers.randint(1, 9) + "\n" for _ in range(3)) + "\n"
            for _ in range(20)
        )
        paths.append(write(tmp_path / name, text))
    expected = list(data_corpus.read_documents(paths))
    assert len(expected) == 60
    shards = data_corpus.shards(paths, 300e-6)
    assert len(shards) > 5
    assert documents_of(shards) == expected
    assert all(shard.num_bytes <= 300 for shard in shards[:-1])
    assert all(len(list(data_corpus.read_shard(shard))) >= 2 for shard in shards)
    # Filled as far as possible: two neighbors never fit into one.
    sizes = [shard.num_bytes for shard in shards]
    assert all(a + b > 300 for a, b in itertools.pairwise(sizes))


def test_a_last_shard_of_one_document_joins_the_one_before(tmp_path):
    document = "x" * 30 + "\n\n"
    shards = data_corpus.shards([write(tmp_path / "a", document * 7)], 100e-6)
    assert [len(list(data_corpus.read_shard(shard))) for shard in shards] == [3, 4]


def test_a_large_document_is_cut_between_sentences_with_a_warning(tmp_path, caplog):
    lines = [f"{number:09d}" for number in range(30)]
    path = write(tmp_path / "a", "small\n\n" + "\n".join(lines) + "\n")
    with caplog.at_level(logging.WARNING):
        shards = data_corpus.shards([path], 100e-6)
    parts = documents_of(shards)
    assert parts[0] == ["small"]
    assert [line for part in parts[1:] for line in part] == lines
    assert all(shard.num_bytes <= 100 for shard in shards[:-1])
    assert all(len(list(data_corpus.read_shard(shard))) >= 2 for shard in shards)
    [warning] = caplog.messages
    # After "small", a blank line and five lines of ten bytes.
    assert warning.startswith(f"{path}:8: this document is larger than half a shard")


def test_text_that_is_not_utf8_is_an_error_with_file_and_line(tmp_path):
    path = write(tmp_path / "a", b"one\n\nthr\xc3\xa9e\nfo\xffur\nfive\n")
    message = r"/a:4: not UTF-8 \(byte 3 of the line is 0xff\)"
    with pytest.raises(ValueError, match=message):
        list(data_corpus.read_documents([path]))
    [shard] = data_corpus.shards([path], 1)
    with pytest.raises(ValueError, match=message):
        list(data_corpus.read_shard(shard))


def test_line_numbers_of_a_later_shard_count_from_the_start_of_the_file(tmp_path):
    text = b"one\ntwo\n\nthree\n\nfour\n\nfive\nsi\xffx\n\nseven\n"
    path = write(tmp_path / "a", text)
    first, *_, last = data_corpus.shards([path], 22e-6)
    assert next(data_corpus.read_shard(first)) == ["one", "two"]
    assert last.spans[0].start > 0
    with pytest.raises(ValueError, match="/a:9: not UTF-8"):
        list(data_corpus.read_shard(last))


def test_shards_may_end_early_once_they_have_documents_enough(tmp_path):
    path = write(tmp_path / "a", ("a" * 98 + "\n\n") * 60)  # 100 bytes each.
    sizes = [
        shard.num_bytes for shard in data_corpus.shards([path], 1, target_mb=0.002)
    ]
    assert sizes == [2000, 2000, 2000]
    # A smaller target would leave too few documents to draw from.
    sizes = [
        shard.num_bytes for shard in data_corpus.shards([path], 1, target_mb=0.001)
    ]
    assert sizes == [1600, 1600, 1600, 1200]
    # And it cuts no document that is not cut without it.
    assert documents_of(
        data_corpus.shards([path], 1, target_mb=0.0001)
    ) == documents_of(data_corpus.shards([path], 1))
