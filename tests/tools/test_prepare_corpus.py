import bz2
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from unittest import mock

import pytest

from bert_tf.preparation import documents
from bert_tf.preparation import inputs
from tests import ring

pytest.importorskip("sentencex")
pytest.importorskip("mwparserfromhell")

STORY = (
    "THE CAT\n\nThe cat sat on the mat in the old house. It slept.\n\nThen it ran.\n"
)
SENTENCES = "The cat sat on the mat in the old house.\nIt slept.\nThen it ran.\n\n"
PAGE = (
    "<page><title>{title}</title><ns>{ns}</ns>{more}<revision><model>wikitext</model>"
    '<text xml:space="preserve">{text}</text></revision></page>\n'
)


@pytest.fixture
def prepare(run_tool, tmp_path):
    """Runs the tool; returns (text written, report)."""

    def run(*flags, folder="out"):
        run_tool("prepare_corpus", f"--output_dir={tmp_path / folder}", *flags)
        return written(tmp_path / folder)

    return run


def written(folder):
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    names = sorted(os.listdir(folder))
    # Nothing else is left.
    assert names == [*report["output_files"], "report.json"]
    text = b"".join((folder / name).read_bytes() for name in report["output_files"])
    return text.decode("utf-8"), report


def _two_streams(pack):
    return lambda data: pack(data[:9]) + pack(data[9:])


@pytest.mark.parametrize(
    "suffix, pack",
    [
        ("txt", bytes),
        ("txt", gzip.compress),  # Packed, and named as if it were not.
        ("txt.gz", gzip.compress),
        ("txt.bz2", bz2.compress),
        ("txt.gz", _two_streams(gzip.compress)),
        ("txt.bz2", _two_streams(bz2.compress)),
    ],
)
def test_text_is_unpacked_while_it_is_read(prepare, tmp_path, suffix, pack):
    path = tmp_path / f"story.{suffix}"
    path.write_bytes(pack(STORY.encode()))
    text, report = prepare(f"--input_file={path}")
    assert text == SENTENCES
    assert report["read"]["headings"] == 1


def test_a_folder_is_read_in_order_and_other_files_are_skipped(prepare, tmp_path):
    for name in ("in/b.txt", "in/a/z.text", "in/.hidden.txt", "in/picture.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"This is {path.name} here.", encoding="utf-8")
    text, report = prepare(f"--input_file={tmp_path / 'in'}")
    assert text == "This is z.text here.\n\nThis is b.txt here.\n\n"
    assert report["skipped_files"] == [str(tmp_path / "in/picture.png")]


def test_json_lines_are_documents_of_the_field_that_is_named(prepare, tmp_path):
    rows = [
        {"body": "One here. Two here.", "language": "en"},
        {"body": "Three.\nFour.", "language": "en"},
        {"body": " ", "language": "en"},
    ]
    path = tmp_path / "rows.ndjson"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    text, report = prepare(f"--input_file={path}", "--text_field=body")
    assert text == "One here.\nTwo here.\n\nThree.\nFour.\n\n"
    assert report["documents"] == 2
    assert report["read"]["empty_documents"] == 1


@pytest.mark.parametrize(
    "text, expected",
    [
        # In a file this would be a title page, a chapter and wrapped lines.
        ("The Cat\n\nCHAPTER I\n\nIt sat.", ["The Cat", "CHAPTER I", "It sat."]),
        ("The cat sat\nin the old\nhouse.", ["The cat sat", "in the old", "house."]),
        ("A  _NEWLINE_ is\r\na word.", ["A _NEWLINE_ is", "a word."]),
    ],
)
def test_a_line_of_a_json_text_is_a_paragraph(prepare, tmp_path, text, expected):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": text}))
    found, report = prepare(f"--input_file={path}")
    assert found.split("\n") == [*expected, "", ""]
    assert report["read"]["headings"] == 0


def test_remote_paths_are_read_and_written_as_local_ones(prepare, run_tool, tmp_path):
    """file:// represents any store that TensorFlow supports."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt.gz").write_bytes(gzip.compress(STORY.encode()))
    rows = "".join(json.dumps({"text": f"Row {n}."}) + "\n" for n in range(5))
    (tmp_path / "in" / "d.jsonl").write_text(rows)
    (tmp_path / "in" / "e.xml.bz2").write_bytes(bz2.compress(_dump(3).encode()))
    expected, _ = prepare(f"--input_file={tmp_path / 'in'}")
    out = tmp_path / "remote"
    run_tool(
        "prepare_corpus",
        f"--input_file=file://{tmp_path / 'in'}",
        f"--output_dir=file://{out}",
    )
    names = json.loads((out / "report.json").read_text())["output_files"]
    assert "".join((out / name).read_text() for name in names) == expected
    # Object stores have no folders; on a disk an empty one stays.
    assert not any(path.is_file() for path in (out / ".prepare_corpus").iterdir())


def test_the_language_s_rules_end_sentences(prepare, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("Er kam am 3. Mai an. Gut.", encoding="utf-8")
    german, _ = prepare(f"--input_file={path}", "--language=de")
    english, _ = prepare(f"--input_file={path}", folder="english")
    assert german == "Er kam am 3. Mai an.\nGut.\n\n"
    assert english != german


def _dump(num_articles=60):
    pages = [
        PAGE.format(title="T", ns=1, more="", text="Talk."),
        PAGE.format(title="R", ns=0, more='<redirect title="X" />', text="#REDIRECT"),
    ]
    pages += [
        PAGE.format(
            title=f"A{n}",
            ns=0,
            more="",
            text=f"'''A{n}''' is a [[thing]]. It &amp;amp; {'x ' * 200}.\n* list\n",
        )
        for n in range(num_articles)
    ]
    return "<mediawiki>\n" + "".join(pages) + "</mediawiki>\n"


def _pieces(data):
    """Returns one bz2 stream per 777 bytes, as pbzip2 writes them."""
    return b"".join(bz2.compress(data[n : n + 777]) for n in range(0, len(data), 777))


@pytest.mark.parametrize(
    "name, pack",
    [
        ("wiki.xml", bytes),
        ("wiki.xml.bz2", bz2.compress),
        ("wiki.xml.gz", gzip.compress),
        ("wiki-multistream.xml-p1p99.bz2", _pieces),
    ],
)
def test_a_dump_gives_its_articles(prepare, tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(_dump(9).encode()))
    text, report = prepare(f"--input_file={tmp_path / name}")
    articles = text.split("\n\n")[:-1]
    assert [article.split(" is")[0] for article in articles] == [
        f"A{n}" for n in range(9)
    ]
    assert articles[0].split("\n")[0] == "A0 is a thing."
    assert articles[0].split("\n")[1].startswith("It & x x")
    assert "list" not in text
    assert report["read"]["skipped_pages"] == 2


def _many(tmp_path, count=20):
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(count):
        text = "\n".join(
            f"File {n} says {m} in a row. It goes on and on here." for m in range(n + 1)
        )
        (folder / f"{n:03d}.txt").write_text(text + "\nThe end is near.\n")
    return folder


def test_what_is_written_does_not_depend_on_the_number_of_workers(
    prepare, tmp_path, monkeypatch
):
    monkeypatch.setattr(inputs, "_UNIT_BYTES", 2000)
    folder = _many(tmp_path)
    one = prepare(f"--input_file={folder}", folder="one")
    two = prepare(f"--input_file={folder}", "--num_workers=2", folder="two")
    assert one == two
    names = one[1]["output_files"]
    assert len(names) > 2
    for name in names:
        data = (tmp_path / "one" / name).read_bytes()
        assert data == (tmp_path / "two" / name).read_bytes()
        assert data.endswith(b"\n\n")


def _bytes(data):
    return lambda path: path.write_bytes(data)


LONG = os.urandom(200_000).hex().encode()


@pytest.mark.parametrize(
    "name, write, message",
    [
        ("none.txt", lambda path: None, "No such file"),
        ("empty.txt", _bytes(b""), "Found no running text in"),
        ("empty.xml", _bytes(b"<mediawiki></mediawiki>"), "Found no running text in"),
        ("folder", lambda path: path.mkdir(), "Found no text in"),
        *(
            (name, _bytes(pack(LONG)[:-900]), f"{name}: damaged or truncated")
            for name, pack in (
                ("cut.txt.gz", gzip.compress),
                ("cut.txt.bz2", bz2.compress),
                ("cut.xml.bz2", bz2.compress),
            )
        ),
        ("a.gz", _bytes(gzip.compress(LONG)[:50] + bytes(99)), "a.gz: damaged"),
        (
            "a.zip",
            _bytes(b"PK\x03\x04" + bytes(99)),
            "a.zip is an archive or has NUL bytes; expected UTF-8",
        ),
        ("a.txt.zst", _bytes(b"\x28\xb5\x2f\xfd$"), "Unpack other formats first"),
        ("latin.txt", _bytes(b"A.\nCaf\xe9."), "latin.txt:2: not UTF-8 (byte 4"),
        ("page.html", _bytes(b"<p>A.</p>"), "page.html: expected plain text, but the"),
        ("f.csv", _bytes(b"body\nA.\n"), "f.csv:1: there is no column 'text'"),
        ("utf16.txt", _bytes("Text.".encode("utf-16")), "the text is UTF-16"),
        ("binary.txt", _bytes(b"\x7fELF\0\0"), "binary.txt is an archive or has NUL"),
        ("a.xml", _bytes(b"<page><title>A</page>"), "a.xml: not a complete Wikipedia"),
        ("b.xml", _bytes(b"<page><title>A</title>"), "b.xml: not a complete Wikipedia"),
    ],
)
def test_bad_input_is_one_clear_line(run_tool, tmp_path, name, write, message):
    path = tmp_path / name
    write(path)
    folder = tmp_path / "out"
    result = run_tool(
        "prepare_corpus", f"--input_file={path}", f"--output_dir={folder}", exit_code=1
    )
    [line] = [line for line in result.stderr.splitlines() if "prepare_corpus:" in line]
    assert message in line
    assert not list(tmp_path.rglob("corpus-*"))


KILLED = """
import os, signal, sys, time
from bert_tf import progress
from bert_tf.preparation import inputs, options, workflow

STAGE, WORKERS, KILLED, INPUT, OUTPUT = sys.argv[1:]
_rename = workflow.files.rename
inputs._UNIT_BYTES = 2000
_read = workflow.documents.read

def slow(*arguments):
    time.sleep(0.1)  # So that something is left to do, however fast all else is.
    return _read(*arguments)

workflow.documents.read = slow

def kill():
    (os.kill if KILLED == "parent" else os.killpg)(os.getpid(), signal.SIGKILL)

def stop(stage, done, total, **_):
    if STAGE == "read" and done > 0.3 * total:
        kill()

def rename(source, target):
    if STAGE == "move" and "corpus-00002" in target:
        kill()
    _rename(source, target)

_remove_work = workflow.parallel.remove_work

def remove_work(work):
    # The files of the corpus have been renamed, and the work is still there.
    if STAGE == "publish" and os.path.exists(OUTPUT + "/report.json"):
        os.remove(OUTPUT + "/report.json")
        kill()
    _remove_work(work)

workflow.files.rename, workflow.parallel.remove_work = rename, remove_work

if __name__ == "__main__":
    with progress.reporting_to(stop):
        workflow.prepare_corpus(
            options.PrepareCorpusOptions(
                input_file=INPUT, output_dir=OUTPUT, num_workers=int(WORKERS)
            )
        )
"""


def _wait_for_the_end_of(process_group):
    for _ in range(600):
        try:
            os.killpg(process_group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("The workers of a killed run are still there after a minute.")


@pytest.mark.parametrize(
    "stage, workers, killed",
    [
        ring.slow("read", 1, "parent"),
        ring.slow("read", 2, "parent"),
        ("read", 2, "all"),
        ring.slow("move", 1, "parent"),
        ("publish", 1, "parent"),
    ],
)
def test_a_killed_run_resumes(
    prepare, project_root, tmp_path, monkeypatch, stage, workers, killed
):
    monkeypatch.setattr(inputs, "_UNIT_BYTES", 2000)
    folder, out = _many(tmp_path), tmp_path / "out"
    whole = prepare(f"--input_file={folder}", folder="whole")
    (tmp_path / "killed.py").write_text(KILLED)
    process = subprocess.Popen(
        [sys.executable, "killed.py", stage, str(workers), killed, folder, out],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project_root)},
        start_new_session=True,
    )
    assert process.wait() == -signal.SIGKILL
    _wait_for_the_end_of(process.pid)  # The workers notice that their parent is gone.
    assert not (out / "report.json").exists()
    num_parts = len(list((out / ".prepare_corpus").glob("0*.json")))
    read = mock.Mock(side_effect=documents.read)
    monkeypatch.setattr(documents, "read", read)
    assert prepare(f"--input_file={folder}") == whole
    assert num_parts > 0
    assert read.call_count < (20 if stage == "read" else 1)


def test_a_finished_corpus_is_neither_created_again_nor_replaced(
    run_tool, prepare, tmp_path, monkeypatch
):
    path, out = tmp_path / "a.txt", tmp_path / "out"
    path.write_text("One here.\n" * 500)
    first = prepare(f"--input_file={path}")
    with monkeypatch.context() as patch:
        patch.setattr(documents, "read", None)
        assert prepare(f"--input_file={path}") == first
    path.write_text("Two here.\n")
    flags = [f"--input_file={path}", f"--output_dir={out}"]
    result = run_tool("prepare_corpus", *flags, exit_code=1)
    assert "contains corpus-00000-of-00001.txt of another corpus" in result.stderr
    assert written(out) == first
