"""Zips are unpacked whole or not at all, and never out of their folder."""

import io
import json
import os
import stat
import zipfile

import pytest

from bert_tf.checkpoints.catalogue import models
from bert_tf.checkpoints.catalogue import unpacking
from tests.checkpoints.catalogue import released_double as double

DATA = f"{double.FOLDER}bert_model.ckpt.data-00000-of-00001"
INDEX = f"{double.FOLDER}bert_model.ckpt.index"
CONFIG = f"{double.FOLDER}bert_config.json"
VOCAB = f"{double.FOLDER}vocab.txt"


@pytest.fixture(scope="module")
def released_files(tmp_path_factory):
    """{name in a zip: bytes} of the double."""
    folder = tmp_path_factory.mktemp("released")
    double.write_files(folder)
    return double.read_files(folder)


def unpack(folder, content, model=double.MODEL, **kwargs):
    (folder / "model.zip").write_bytes(content)
    target = folder / "cache" / "model"
    unpacking.unpack(str(folder / "model.zip"), str(target), model, **kwargs)
    return target


def without_folder(files):
    return {name.removeprefix(double.FOLDER): files[name] for name in files}


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files,
        without_folder,  # As the zips of 2020.
        lambda files: {double.FOLDER: b"", **files},  # The folder is a member too.
        lambda files: {"__MACOSX/._vocab.txt": b"x", "README.md": b"x", **files},
    ],
)
def test_the_files_of_a_model_are_unpacked_and_nothing_else(
    tmp_path, released_files, change
):
    target = unpack(tmp_path, double.zipped(change(released_files)))
    written = {path.name: path.read_bytes() for path in target.iterdir()}
    assert written == without_folder(released_files)
    assert unpacking.is_unpacked(target)
    assert [path.name for path in target.parent.iterdir()] == ["model"]


def test_a_zip_without_the_graph_will_do(tmp_path, released_files):
    files = {n: c for n, c in released_files.items() if not n.endswith(".meta")}
    assert unpacking.is_unpacked(unpack(tmp_path, double.zipped(files)))


def test_progress_counts_what_is_written(tmp_path, released_files):
    told = []

    def progress(stage, done, total, *, unit):
        told.append((stage, round(done * 1e6), round(total * 1e6), unit))

    unpack(tmp_path, double.zipped(released_files), progress=progress)
    size = sum(map(len, released_files.values()))
    assert told[-1] == ("unpack bert-double", size, size, "MB")
    assert [done for _, done, _, _ in told] == sorted(done for _, done, _, _ in told)


def with_member(name, content=b"x", **attributes):
    """A zip with one more member, with arbitrary attributes."""

    def change(files):
        file = io.BytesIO(double.zipped(files))
        with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
            info = zipfile.ZipInfo("placeholder")
            info.filename = name
            info.compress_type = zipfile.ZIP_DEFLATED
            for key, value in attributes.items():
                setattr(info, key, value)
            archive.writestr(info, content)
        return file.getvalue()

    return change


def patched(find, offset, change):
    """A zip with one byte changed, counted from the last place of some bytes."""

    def patch(files):
        content = bytearray(double.zipped(files))
        place = content.rindex(find) + offset
        content[place] = change(content[place])
        return bytes(content)

    return patch


def with_file(name, content):
    return lambda files: double.zipped({**files, name: content})


def without(name):
    return lambda files: double.zipped({n: c for n, c in files.items() if n != name})


def cut(share):
    def change(files):
        content = double.zipped(files)
        return content[: int(share * len(content))]

    return change


def with_config(**values):
    config = {**double.CONFIG.to_dict(), **values}
    return with_file(CONFIG, json.dumps(config).encode())


LINK = (stat.S_IFLNK | 0o777) << 16
HOSTILE = "whose name points outside its folder"


@pytest.mark.parametrize(
    "make, message",
    [
        # Names that do not name a file in the folder.
        (with_member("../vocab.txt"), HOSTILE),
        (with_member("a/../../b"), HOSTILE),
        (with_member("/etc/cron.d/x"), HOSTILE),
        (with_member("..\\..\\x"), HOSTILE),
        (with_member("\\\\server\\share\\x"), HOSTILE),
        (with_member("C:\\x"), HOSTILE),
        (with_member("C:x"), HOSTILE),
        (with_member("a/vocab.txt:stream"), HOSTILE),
        (with_member("a/b", b"/etc/passwd", external_attr=LINK), "a link 'a/b'"),
        # The second one would replace the first.
        (with_member("other/vocab.txt"), "has vocab.txt twice: .* other/vocab.txt"),
        # Too large, or far too much for what is stored.
        (with_member("a/bert_model.ckpt.meta2", bytes(10**8)), "to 100000000 bytes"),
        (with_file(VOCAB, bytes(10**7)), "would unpack from .* to 10000000 bytes"),
        # A password; bit 0 of the flags at byte 8 of a central header.
        (patched(b"PK\x01\x02", 8, lambda b: b | 1), "is encrypted"),
        # Another way to compress; byte 10 there.
        (patched(b"PK\x01\x02", 10, lambda b: 99), "cannot be unpacked|is damaged"),
        # A size that is not that of the content; byte 24 there.
        (patched(b"PK\x01\x02", 24, lambda b: b ^ 1), "is damaged"),
        # Content that was damaged on the way.
        (patched(b"PK\x03\x04", 80, lambda b: b ^ 255), "is damaged"),
        # Not all of it.
        (cut(0.5), "is truncated or damaged"),
        (cut(0.999), "is truncated or damaged"),
        (lambda files: b"", "begins with b''"),
        (
            lambda files: b"<!DOCTYPE html><html>",
            r"is not a zip file: it begins with b'<",
        ),
        (without(DATA), r"has no bert_model.ckpt.data-00000-of-00001; expected"),
        (without(INDEX), r"has no bert_model.ckpt.index; expected"),
        (without(VOCAB), r"has no vocab.txt; expected the zip of a released model"),
        (lambda files: double.zipped({}), "begins with|has no bert_model"),
        # Files whose content does not match their name.
        (with_file(INDEX, b"no index"), r"bert_model.ckpt"),
        (with_file(CONFIG, b"{"), r"model.zip: bert_config.json is not JSON"),
        (with_file(CONFIG, b'{"a": 1}'), r"model.zip: bert_config.json: Unknown key a"),
        (with_file(VOCAB, b"a\na\n"), r"model.zip: vocab.txt:2: token 'a' is already"),
        # Another model.
        (with_config(hidden_size=16), "hidden_size in bert_config.json is 16, expect"),
        (with_config(num_hidden_layers=2), "num_hidden_layers in .* is 2, expected 1"),
        (
            with_config(vocab_size=10),
            "vocab_size in bert_config.json is 10, expected 9",
        ),
        (
            with_file(VOCAB, "\n".join(double.TOKENS[:8]).encode()),
            "number of pieces in vocab.txt is 8, expected 9 for bert-double",
        ),
    ],
)
def test_a_wrong_zip_is_refused_in_one_line_and_leaves_nothing(
    tmp_path, released_files, make, message
):
    with pytest.raises(ValueError, match=message) as caught:
        unpack(tmp_path, make(released_files))
    assert "model.zip" in str(caught.value)
    assert "\n" not in str(caught.value)
    left = {os.path.relpath(path, tmp_path) for path in tmp_path.rglob("*")}
    assert left <= {"model.zip", "cache"}


def test_a_checkpoint_of_another_size_is_refused(tmp_path, released_files):
    larger = double.released.ReleasedModel(
        name="larger", num_layers=1, hidden_size=8, vocab_size=10, do_lower_case=True
    )
    tokens = "".join(f"{token}\n" for token in (*double.TOKENS, "e"))
    config = {**double.CONFIG.to_dict(), "vocab_size": 10}
    files = {
        **released_files,
        VOCAB: tokens.encode(),
        CONFIG: json.dumps(config).encode(),
    }
    with pytest.raises(ValueError, match=r"word_embeddings .* is \[9, 8\], expected"):
        unpack(tmp_path, double.zipped(files), larger)


def test_a_zip_that_would_fill_the_disk_is_refused(
    tmp_path, released_files, monkeypatch
):
    monkeypatch.setattr(unpacking, "max_bytes", lambda model: 1000)
    with pytest.raises(ValueError, match="bytes, expected at most 1000 for"):
        unpack(tmp_path, double.zipped(released_files))
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    "name, parameters",
    # Of the encoder and both heads, as the release's checkpoints have them.
    [
        ("bert-tiny", 4_416_698),
        ("bert-base-uncased", 110_106_428),
        ("bert-large-uncased", 336_226_108),
        ("bert-base-multilingual-cased", 178_566_653),
    ],
)
def test_every_real_checkpoint_is_allowed_even_with_its_optimizers_slots(
    name, parameters
):
    limit = unpacking.max_bytes(models.find(name).model)
    assert 12 * parameters + 10**7 < limit < 12 * parameters + 10**8


def test_what_a_killed_process_left_is_removed(tmp_path, released_files):
    left = tmp_path / "cache" / ".model.0123.unpacking"
    left.mkdir(parents=True)
    (left / "vocab.txt").write_text("half")
    of_another = tmp_path / "cache" / ".model-2.0123.unpacking"
    of_another.mkdir()
    unpack(tmp_path, double.zipped(released_files))
    assert not left.exists()
    assert of_another.exists()
