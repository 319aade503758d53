import os

import pytest

from bert_tf import files


def test_a_complete_file_gets_its_name_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new folder" / "out.txt"
    with files.complete_or_absent(path) as file:
        file.write("all of it")
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert os.listdir(path.parent) == ["out.txt"]


@pytest.mark.parametrize("stop", [ValueError, KeyboardInterrupt])
def test_an_interrupted_file_is_absent_and_the_old_one_stays(tmp_path, stop):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(stop), files.complete_or_absent(path, "wb") as file:
        file.write(b"half")
        raise stop
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_no_glob_meets_an_unfinished_file(tmp_path):
    with files.complete_or_absent(tmp_path / "x.npz") as file:
        file.write("x")
        with pytest.raises(FileNotFoundError):
            files.expand(str(tmp_path / "*"))
    assert files.expand(str(tmp_path / "*")) == [str(tmp_path / "x.npz")]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with files.complete_or_absent(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_a_pipe_is_written_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with files.complete_or_absent(pipe) as file:
        file.write("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_the_error_of_a_full_disk_names_the_file():
    # Nothing is written before the buffer is full, or the file closed.
    for size in (1, 10_000_000):
        with pytest.raises(OSError, match=r"^/dev/full: cannot be written: No space"):
            with files.complete_or_absent("/dev/full", "wb") as file:
                file.write(b"x" * size)
    with pytest.raises(OSError, match=r"^/dev/full: cannot be written: No space"):
        with files.open_file("/dev/full", "w") as file:
            file.write("x")


LEFTOVER = f".out.txt.{'0' * 32}.partial"


@pytest.mark.parametrize("only", [None, "out.txt"])
def test_leftovers_are_removed_and_files_in_progress_are_not(tmp_path, only):
    (tmp_path / LEFTOVER).write_text("of a killed process")
    kept = [".out.txt.partial", "out.txt.partial", f"out.txt.{'0' * 32}.partial"]
    kept.append(f"{LEFTOVER}.index")  # Of a checkpoint: another process may write it.
    for name in kept:
        (tmp_path / name).write_text("of somebody")
    with files.complete_or_absent(tmp_path / "out.txt") as file:
        file.write("all of it")
        files.remove_leftovers(tmp_path, only)
    assert (tmp_path / "out.txt").read_text() == "all of it"
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "out.txt"])


@pytest.mark.parametrize(
    "error, reason",
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        # Safetensors, TensorFlow.
        (OSError("I/O error: File too large (os error 27)"), "File too large"),
        (
            OSError(
                "{{node SaveV2}} run/.m.tempstate1; Disk quota exceeded [Op:SaveV2]"
            ),
            "Disk quota exceeded",
        ),
        (ValueError("What else. [Op:X]\nmore"), "What else"),
    ],
)
def test_the_reason_of_a_failed_write_is_in_the_words_of_the_system(error, reason):
    assert files.reason_of(error) == reason


def test_expand_keeps_the_order_of_patterns_and_sorts_each(tmp_path):
    for name in (
        "b.tfrecord",
        "a.tfrecord",
        "a.tfrecord.index.npz",
        "z.txt",
        "[1].txt",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "c.tfrecord").mkdir()
    patterns = ["z.txt", "*.tfrecord*", "[1].txt"]
    found = files.expand([str(tmp_path / pattern) for pattern in patterns])
    names = [os.path.basename(path) for path in found]
    assert names == ["z.txt", "a.tfrecord", "b.tfrecord", "[1].txt"]
    listed = files.expand(f"{tmp_path}/z.txt, {tmp_path}/b.*,")
    assert [os.path.basename(path) for path in listed] == ["z.txt", "b.tfrecord"]


def test_expand_names_the_pattern_that_matches_nothing(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(FileNotFoundError, match=r"No file matches .*/b\*\."):
        files.expand(f"{tmp_path}/a,{tmp_path}/b*")
    with pytest.raises(FileNotFoundError, match=r"No such file: .*/b\."):
        files.expand([f"{tmp_path}/b"])
    with pytest.raises(ValueError, match="at least one file name"):
        files.expand("")


@pytest.mark.parametrize(
    "content, lines",
    [
        (b"", []),
        (b"a\nb", ["a", "b"]),  # The last line needs no end.
        (b"a\r\n\r\nb\n", ["a", "", "b"]),  # Windows.
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),  # One mark, at the start.
        ("a\x0bb\u2028c\x85\n".encode(), ["a\x0bb\u2028c\x85"]),  # Only \n ends a line.
        (b"a\rb\r\r\n", ["a\rb\r"]),  # One carriage return belongs to the line end.
    ],
)
def test_read_lines(tmp_path, content, lines):
    (tmp_path / "text").write_bytes(content)
    assert list(files.read_lines(tmp_path / "text")) == lines


@pytest.mark.parametrize(
    "name, error, sentence",
    [
        ("absent", FileNotFoundError, "No such file: .*absent"),
        ("folder", IsADirectoryError, "folder is a folder; expected a file"),
        ("file/deep", NotADirectoryError, "file/deep: expected a folder"),
    ],
)
def test_unreadable_files_give_one_sentence(tmp_path, name, error, sentence):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(error, match=sentence):
        list(files.read_lines(tmp_path / name))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"{", r"a\.json is not JSON: Expecting property name .*; try again\."),
        (b"[" * 200_000, r"a\.json is not JSON: it is nested too deeply; try again\."),
        (b'{"a": "\xfc"}', r"a\.json is not JSON: it is not UTF-8; try again\."),
        (b"[1]", r"a\.json contains a JSON list, expected an object; try again\."),
    ],
)
def test_json_that_is_not_an_object_is_one_sentence(tmp_path, content, message):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        files.read_json(tmp_path / "a.json", advice="try again")


def test_paths_with_a_scheme_go_through_tensorflow():
    tf = pytest.importorskip("tensorflow")
    folder = "ram://test_files"
    with files.complete_or_absent(f"{folder}/deep/a.txt") as file:
        file.write("ü\nb")
    with pytest.raises(KeyboardInterrupt):
        with files.complete_or_absent(f"{folder}/deep/b.txt") as file:
            raise KeyboardInterrupt
    assert tf.io.gfile.exists(f"{folder}/deep/a.txt")
    assert files.list_folder(f"{folder}/deep") == ["a.txt"]
    assert list(files.read_lines(f"{folder}/deep/a.txt")) == ["ü", "b"]
    assert files.size(f"{folder}/deep/a.txt") == 4
    assert files.expand(f"{folder}/deep/*.txt") == [f"{folder}/deep/a.txt"]
    files.rename(f"{folder}/deep/a.txt", f"{folder}/deep/c.txt")
    files.remove(f"{folder}/deep/c.txt")
    assert not files.exists(f"{folder}/deep/c.txt")
    with pytest.raises(FileNotFoundError, match="No such file: ram://"):
        files.open_file(f"{folder}/deep/c.txt")
    with pytest.raises(OSError, match="unknown://x"):
        files.size("unknown://x")
