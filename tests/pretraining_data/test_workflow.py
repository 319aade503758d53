import os
import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest

from bert_tf import progress
from bert_tf.data import corpus as data_corpus
from bert_tf.data import record_checks
from bert_tf.data import tfrecord
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from bert_tf.tokenization import full
from tests import runs

# The 2 kB of text once more for each name, and cut between documents.
TEXT = str(pathlib.Path(__file__).parents[1] / "golden" / "text.txt")
THREE_SHARDS = {"input_file": [TEXT, TEXT], "shard_mb": 0.0016}
SMALL = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 2}


@pytest.fixture
def make(golden, tmp_path):
    """Runs create_data on the small recorded text; returns (report, records)."""

    def run(name="out.tfrecord", reporter=None, **changes):
        options = pretraining_data_options.CreatePretrainingDataOptions(
            **{
                "input_file": str(golden / "text.txt"),
                "output_file": str(tmp_path / name),
                "vocab_file": str(golden / "vocab.txt"),
                **SMALL,
                **changes,
            }
        )
        with progress.reporting_to(reporter):
            report = pretraining_data_workflow.create_data(options)
        return report, tfrecord.RecordFiles(options.output_file)

    return run


def assert_same_records(path, expected_path):
    runs.assert_same_batches([runs.columns(path)], [runs.columns(expected_path)])


@pytest.mark.parametrize(
    "name, flags",
    [
        (
            "default.tfrecord",
            {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 8},
        ),
        (
            "whole_word.tfrecord",
            {
                "max_seq_length": 48,
                "max_predictions_per_seq": 8,
                "dupe_factor": 2,
                "do_whole_word_mask": True,
                "random_seed": 4,
                "short_seq_prob": 0.5,
            },
        ),
    ],
)
def test_the_release_sampler_gives_the_small_recorded_files(
    make, golden, tmp_path, name, flags
):
    make(sampler="release", **flags)
    assert_same_records(tmp_path / "out.tfrecord", golden / name)


@pytest.mark.parametrize(
    "name, flags",
    [
        ("default.tfrecord", {"dupe_factor": 2}),
        (
            "whole_word_256.tfrecord",
            {
                "dupe_factor": 1,
                "do_whole_word_mask": True,
                "max_seq_length": 256,
                "max_predictions_per_seq": 39,
                "random_seed": 7,
                "short_seq_prob": 0.3,
            },
        ),
    ],
)
def test_the_release_sampler_gives_the_recorded_files(
    shared, run_tool, tmp_path, name, flags
):
    folder = shared / "golden" / "create_pretraining_data"
    vocab = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    run_tool(
        "create_pretraining_data",
        f"--input_file={folder / 'input.txt'}",
        f"--output_file={tmp_path / name}",
        f"--vocab_file={vocab}",
        "--sampler=release",
        *(f"--{flag}={value}" for flag, value in flags.items()),
    )
    assert_same_records(tmp_path / name, folder / name)


def test_several_output_files_get_the_records_in_turn(make, tmp_path):
    for sampler in ("release", "vectorized"):
        make("one", sampler=sampler)
        one = runs.columns(tmp_path / "one")["input_ids"]
        make(sampler=sampler, output_file=[str(tmp_path / name) for name in "abc"])
        for turn, name in enumerate("abc"):
            ids = runs.columns(tmp_path / name)["input_ids"]
            np.testing.assert_array_equal(ids, one[turn::3], err_msg=sampler)


def test_shards_go_to_the_files_in_turn_whatever_the_number_of_workers(make, tmp_path):
    contents = []
    for workers in (1, 3):
        names = [str(tmp_path / f"{name}{workers}") for name in "ab"]
        report, _ = make(output_file=names, num_workers=workers, **THREE_SHARDS)
        assert report.num_shards == 3
        files = [pathlib.Path(name) for name in names]
        side_files = [pathlib.Path(name + ".index.npz") for name in names]
        contents.append([file.read_bytes() for file in [*files, *side_files]])
    assert contents[0] == contents[1]
    made = sorted(path.name for path in tmp_path.iterdir())
    assert [name for name in made if not name.endswith(".npz")] == [
        "a1",
        "a3",
        "b1",
        "b3",
    ]


def test_a_casing_that_does_not_fit_the_vocabulary_is_logged(make, caplog):
    make(do_lower_case=True)
    assert caplog.text == ""
    make(do_lower_case=False)
    assert "words with capitals become [UNK]; pass --do_lower_case" in caplog.text


def test_a_vocabulary_file_that_was_rewritten_is_read_again(make, golden, tmp_path):
    tokens = (golden / "vocab.txt").read_text().split()
    path = tmp_path / "vocab.txt"
    flags = {"vocab_file": str(path), "num_workers": 1}
    flags |= {"mask_share": 0.0, "same_share": 1.0, "random_share": 0.0}
    rows = []
    for order in (tokens, [tokens[0], *tokens[:0:-1]]):
        path.write_text("\n".join(order))
        _, records = make(**flags)
        rows.append([order[index] for index in records.decoded(0)["input_ids"]])
    assert rows[0] == rows[1]

    def rewrite(*_, **__):  # Called before the first shard.
        path.write_text("\n".join(tokens))

    with pytest.raises(OSError, match="is not the file that the run began with"):
        make(reporter=rewrite, **flags, dupe_factor=1)


def test_sequences_without_next_sentence_are_whole_sentences_in_order(make, golden):
    report, records = make(next_sentence=False, short_seq_prob=0.0)
    columns = runs.columns(records.paths[0])
    assert "next_sentence_labels" not in columns
    assert not columns["segment_ids"].any()
    tokenizer = full.FullTokenizer(golden / "vocab.txt")
    vocabulary = tokenizer.vocabulary
    documents = [
        [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(s)) for s in document]
        for document in data_corpus.read_documents([str(golden / "text.txt")])
    ]
    found = []
    for row in range(records.num_records):
        ids = columns["input_ids"][row].copy()
        used = int(columns["masked_lm_weights"][row].sum())
        places = columns["masked_lm_positions"][row, :used]
        ids[places] = columns["masked_lm_ids"][row, :used]
        length = int(columns["input_mask"][row].sum())
        assert ids[0] == vocabulary.cls_id
        assert ids[length - 1] == vocabulary.sep_id
        assert (ids == vocabulary.sep_id).sum() == 1
        found.append(ids[1 : length - 1].tolist())
    expected = [chunk for document in documents for chunk in greedy(document, 62)]
    assert sorted(found) == sorted(expected * 2)
    assert report.counts.random_next == 0


def greedy(document, room):
    """Returns runs of sentences that fit; a sentence that does not fit is cut."""
    pieces = [
        sentence[start : start + room]
        for sentence in document
        for start in range(0, len(sentence), room)
    ]
    chunks = []
    for piece in pieces:
        if chunks and len(chunks[-1]) + len(piece) <= room:
            chunks[-1] += piece
        else:
            chunks.append(list(piece))
    return chunks


def test_the_report_says_what_was_made(make):
    report, records = make()
    counts = report.counts
    assert (counts.documents, counts.sentences, counts.pieces) == (6, 36, 786)
    assert counts.instances == records.num_records
    columns = runs.columns(records.paths[0])
    assert report.mean_fill == columns["input_mask"].mean()
    assert counts.random_next == columns["next_sentence_labels"].sum()
    text = str(report)
    assert "word pieces:  786" in text
    assert "[UNK]:        0.000% of the pieces" in text


def test_the_side_file_says_how_the_records_were_made(make, golden):
    _, records = make()
    assert records.metadata["vocab_file"] == str(golden / "vocab.txt")
    assert records.metadata["vocab_size"] == 288
    assert records.metadata["do_lower_case"] is True
    record_checks.check(
        records,
        max_seq_length=64,
        max_predictions_per_seq=10,
        vocab_size=288,
        vocabulary=full.FullTokenizer(golden / "vocab.txt").vocabulary,
    )


def assert_as_uninterrupted(make, tmp_path, **changes):
    """Checks the bytes of a resumed run; returns the report of an uninterrupted one."""
    report, _ = make("uninterrupted", **THREE_SHARDS | changes)
    assert report.num_resumed == 0
    expected = (tmp_path / "uninterrupted").read_bytes()
    assert (tmp_path / "out.tfrecord").read_bytes() == expected
    return report


def interrupt_after_a_shard(tmp_path):
    """Returns a reporter that interrupts once a shard is finished."""

    def interrupt(stage, done, total, **_):
        if any(tmp_path.glob(".*.shards/*.json")):
            raise KeyboardInterrupt

    return interrupt


@pytest.mark.parametrize(
    "change, num_resumed",
    [
        ({}, 1),
        ({"num_workers": 2}, 1),  # What is written does not depend on it.
        ({"dupe_factor": 3}, 0),
        ({"random_seed": 6}, 0),
        ({"input_file": [TEXT, "{other}"]}, 0),  # Another text of the same size.
    ],
)
def test_finished_shards_are_used_by_the_same_command_alone(
    make, tmp_path, caplog, change, num_resumed
):
    folder = tmp_path / ".out.tfrecord.shards"
    with pytest.raises(KeyboardInterrupt):
        make(reporter=interrupt_after_a_shard(tmp_path), num_workers=1, **THREE_SHARDS)
    assert f"Keeping 1 finished shards in {folder}." in caplog.text
    other = tmp_path / "other.txt"
    other.write_bytes(pathlib.Path(TEXT).read_bytes().replace(b"the", b"The"))
    if "input_file" in change:
        change = {"input_file": [TEXT, str(other)]}
    flags = {"num_workers": 1, **THREE_SHARDS, **change}
    report, _ = make(**flags)
    assert report.num_resumed == num_resumed
    assert ("of them from an earlier run" in str(report)) == bool(num_resumed)
    assert not folder.exists()
    assert_as_uninterrupted(make, tmp_path, **flags)


def test_a_resumed_run_may_have_more_output_files(make, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make(reporter=interrupt_after_a_shard(tmp_path), num_workers=1, **THREE_SHARDS)
    written = []
    for name, num_resumed in (("out.tfrecord", 1), ("uninterrupted", 0)):
        paths = [tmp_path / name, tmp_path / f"{name}-2"]
        report, _ = make(output_file=[*map(str, paths)], **THREE_SHARDS)
        assert report.num_resumed == num_resumed
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


def _cut_part(note):
    part = note.with_suffix(".part")
    part.write_bytes(part.read_bytes()[:-1])


@pytest.mark.parametrize(
    "damage",
    [
        _cut_part,
        lambda note: note.write_text("not JSON"),
        lambda note: note.write_text('{"counts": {}, "sizes": [0]}'),
    ],
)
def test_a_shard_whose_records_are_damaged_is_done_again(make, tmp_path, damage):
    with pytest.raises(KeyboardInterrupt):
        make(reporter=interrupt_after_a_shard(tmp_path), num_workers=1, **THREE_SHARDS)
    folder = tmp_path / ".out.tfrecord.shards"
    damage(folder / "000000.json")
    (folder / "2018.txt").write_text("keep me")
    make(**THREE_SHARDS)
    assert_as_uninterrupted(make, tmp_path)
    assert [path.name for path in folder.iterdir()] == ["2018.txt"]


def test_a_vocabulary_without_a_mask_is_refused(make, golden, tmp_path):
    tokens = (golden / "vocab.txt").read_text().splitlines()
    tokens[tokens.index("[MASK]")] = "[unused99]"
    vocab_file = tmp_path / "own.txt"
    vocab_file.write_text("\n".join(tokens) + "\n")
    with pytest.raises(ValueError, match=r"own\.txt: \[MASK\] is missing among 288"):
        make(vocab_file=str(vocab_file))


def test_a_run_that_was_killed_goes_on_with_its_finished_shards(
    make, golden, tmp_path, project_root
):
    program = f"""
import glob, os, signal
from bert_tf import progress
from bert_tf.pretraining_data import options, workflow

def kill(stage, done, total, **_):
    if glob.glob({str(tmp_path / ".out.tfrecord.shards" / "*.json")!r}):
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    with progress.reporting_to(kill):
        workflow.create_data(options.CreatePretrainingDataOptions(
            input_file={[TEXT, TEXT]!r}, output_file={str(tmp_path / "out.tfrecord")!r},
            vocab_file={str(golden / "vocab.txt")!r}, num_workers=2, shard_mb=0.0016,
            **{SMALL!r}))
"""
    (tmp_path / "program.py").write_text(program)
    # The call returns when all processes that hold its output, including workers, have
    # ended.
    killed = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(project_root)},
        timeout=500,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "out.tfrecord").exists()
    report, _ = make(**THREE_SHARDS)
    assert 1 <= report.num_resumed <= 3
    uninterrupted = assert_as_uninterrupted(make, tmp_path)
    assert uninterrupted.counts == report.counts
    left = sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".npz")
    # And what the killed process was just writing.
    assert [name for name in left if not name.endswith(".partial")] == [
        "out.tfrecord",
        "program.py",
        "uninterrupted",
    ]


def test_an_error_in_a_worker_is_the_same_as_without(make, tmp_path):
    text = b"the dog .\n\nthe cat .\n\n" * 20 + b"\xff\n"
    (tmp_path / "text.txt").write_bytes(text)
    for workers in (1, 2):
        with pytest.raises(ValueError, match=r"text.txt:81: not UTF-8"):
            make(
                input_file=str(tmp_path / "text.txt"),
                num_workers=workers,
                shard_mb=0.0001,
            )
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


# A worker imports the main module before anything of ours is run in it.
SLOW_TO_START = """
import os, signal, sys, threading, time
if __name__ == "__main__":
    # A process that has threads is not forked, so workers take their time.
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from tools import create_pretraining_data
    sys.exit(create_pretraining_data.main())
os.write(1, b"a worker starts\\n")  # Both at once stay two lines.
time.sleep(1)
"""


def test_ctrl_c_while_workers_start_ends_in_one_line(golden, tmp_path, project_root):
    (tmp_path / "program.py").write_text(SLOW_TO_START)
    (tmp_path / "output").mkdir()
    command = [
        sys.executable,
        tmp_path / "program.py",
        f"--input_file={TEXT},{TEXT}",
        f"--output_file={tmp_path / 'output' / 'out'}",
        f"--vocab_file={golden / 'vocab.txt'}",
        "--num_workers=2",
        "--shard_mb=0.0016",
    ]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(project_root)},
        start_new_session=True,  # A terminal's Ctrl-C reaches all of its processes.
    ) as running:
        assert running.stdout.readline() == "a worker starts\n"
        os.killpg(running.pid, signal.SIGINT)
        _, stderr = running.communicate(timeout=500)
    assert stderr.splitlines()[-1] == (
        "create_pretraining_data: interrupted. Any finished parts are kept; run the "
        "same command again to continue."
    )
    assert "Traceback" not in stderr
    assert running.returncode == 130
    assert list((tmp_path / "output").iterdir()) == []


@pytest.mark.parametrize(
    "flags, message, code",
    [
        ({"input_file": "{tmp}/no.txt"}, "No such file: {tmp}/no.txt", 1),
        ({"input_file": "{tmp}/empty.txt"}, "Found no text in {tmp}/empty.txt", 1),
        ({"input_file": "{tmp}/control.txt"}, "Found no word pieces in", 1),
        ({"input_file": "{tmp}/one.txt"}, "one.txt: found one document, but random", 1),
        (
            {"input_file": "{tmp}/one.txt", "sampler": "tf_data"},
            "one.txt: found one document, but random",
            1,
        ),
        ({"input_file": "{tmp}/latin.txt"}, "latin.txt:3: not UTF-8", 1),
        ({"vocab_file": "{tmp}/no_mask.txt"}, "no_mask.txt: [MASK] is missing", 1),
        ({"output_file": "{tmp}/one.txt/out"}, "{tmp}/one.txt: expected a folder", 1),
        ({"output_file": "{tmp}"}, "{tmp} is a folder", 1),
        ({"output_file": "/dev/full"}, "/dev/full: cannot be written: No space", 1),
        (
            {"output_file": "{tmp}/a,{tmp}/a"},
            "/a is given twice and would be overwritten",
            2,
        ),
        ({"max_predictions_per_seq": 65}, "expected at most max_seq_length (64)", 2),
        (
            {"sampler": "release", "next_sentence": False},
            "--sampler=release creates sentence pairs only",
            2,
        ),
    ],
)
def test_bad_input_is_one_clear_line(golden, run_tool, tmp_path, flags, message, code):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "control.txt").write_text("\u200d\n\n\u200d\n")
    (tmp_path / "one.txt").write_text("one document\nof two sentences\n")
    (tmp_path / "latin.txt").write_bytes("a\n\ncafé\n".encode("latin-1"))
    (tmp_path / "no_mask.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    flags = {
        "input_file": str(golden / "text.txt"),
        "output_file": "{tmp}/out",
        "vocab_file": str(golden / "vocab.txt"),
        **SMALL,
        **flags,
    }
    result = run_tool(
        "create_pretraining_data",
        *(f"--{k}={str(v).replace('{tmp}', str(tmp_path))}" for k, v in flags.items()),
        exit_code=code,
    )
    assert message.replace("{tmp}", str(tmp_path)) in result.refusal
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "output, user",
    [
        ("text.txt", "input_file"),
        ("link", "input_file"),  # To text.txt.
        ("vocab.txt", "vocab_file"),
        ("out,./out", "output_file"),
    ],
)
def test_what_is_read_is_never_overwritten(
    golden, run_tool, tmp_path, monkeypatch, output, user
):
    monkeypatch.chdir(tmp_path)
    for name in ("text.txt", "vocab.txt"):
        (tmp_path / name).write_bytes((golden / name).read_bytes())
    (tmp_path / "link").symlink_to("text.txt")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = run_tool(
        "create_pretraining_data",
        "--input_file=te*.txt",
        f"--output_file={output}",
        "--vocab_file=vocab.txt",
        exit_code=2,
    )
    assert len(result.stderr.splitlines()) == 1
    assert user in result.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_creating_data_imports_no_tensorflow(project_root):
    """Importing it takes seconds, and its threads forbid forking workers."""
    program = "import sys; from bert_tf.pretraining_data import workflow; "
    program += "sys.exit('tensorflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=project_root, check=True)


def test_many_unknown_pieces_are_named_where_they_are_made_and_read(
    make, golden, tmp_path, caplog
):
    path = tmp_path / "vocab.txt"
    pieces = (golden / "vocab.txt").read_text().split("\n")
    path.write_text("\n".join(p for p in pieces if p not in (".", ",", "the", "of")))
    with pytest.raises(ValueError, match=r"^\d\.\d% of .* pieces are \[UNK\], and"):
        make(vocab_file=str(path), max_unknown_share=0.05)
    assert [file.name for file in tmp_path.iterdir()] == ["vocab.txt"]
    _, records = make(vocab_file=str(path))
    record_checks.check(records)
    created, read = [r for r in caplog.records if "pieces are [UNK]" in r.message]
    assert created.message == read.message


@pytest.fixture
def check(golden, tmp_path):
    def run(path, **flags):
        return pretraining_data_workflow.check_text(
            pretraining_data_options.CreatePretrainingDataOptions(
                input_file=str(path),
                output_file=str(tmp_path / "unwritten"),
                vocab_file=str(golden / "vocab.txt"),
                check=True,
                **flags,
            )
        )

    return run


def lines_of(findings, severity):
    return [str(one)[8:] for one in findings.all if one.severity == severity]


def test_one_document_is_not_a_corpus(check, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one sentence .\nanother one .\n")
    findings = check(path)
    [error] = lines_of(findings, "error")
    assert error.startswith("documents: next-sentence examples need two")
    assert "documents: 1 documents, 2 sentences, " in " ".join(lines_of(findings, "ok"))


def test_text_for_pretraining(check, sample_data):
    findings = check(sample_data / "corpus.txt")
    assert lines_of(findings, "error") == []
    assert "documents" in " ".join(lines_of(findings, "ok"))
