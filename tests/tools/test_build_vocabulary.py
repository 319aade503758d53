import re

import pytest

from bert_tf.tokenization import vocabulary as vocabulary_module

pytest.importorskip("tokenizers")


def test_a_vocabulary_is_learned_and_described(run_tool, sample_data, tmp_path):
    path = tmp_path / "new" / "vocab.txt"
    result = run_tool(
        "build_vocabulary",
        f"--input_file={sample_data / 'corpus.txt'}",
        f"--vocab_file={path}",
        "--vocab_size=1500",
        "--do_lower_case=False",
    )
    vocabulary = vocabulary_module.Vocabulary.load(path)
    assert len(vocabulary) == 1500
    assert vocabulary.unk_id == 100
    assert "The" in vocabulary
    assert "1,500 tokens, 99 of them [unused]" in result.stdout
    assert re.search(r"learned from [\d,]+ words", result.stdout)


def test_two_processes_write_the_same_bytes(run_tool_process, sample_data, tmp_path):
    contents = []
    for number in range(2):
        path = tmp_path / f"{number}.txt"
        run_tool_process(
            "build_vocabulary",
            f"--input_file={sample_data / 'corpus.txt'}",
            f"--vocab_file={path}",
            "--vocab_size=3000",
            env={"PYTHONHASHSEED": str(number), "RAYON_NUM_THREADS": str(number + 1)},
        )
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize("flags", [[], ["--output_file={}/other.txt"]])
def test_words_fill_unused_places(run_tool, golden, tmp_path, flags):
    path = tmp_path / "vocab.txt"
    original = (golden / "vocab.txt").read_bytes()
    path.write_bytes(original)
    (tmp_path / "words.txt").write_text("Zygote\n\nnaïve\n", encoding="utf-8")
    result = run_tool(
        "build_vocabulary",
        f"--vocab_file={path}",
        f"--fill_unused={tmp_path / 'words.txt'}",
        *[flag.format(tmp_path) for flag in flags],
    )
    assert "2 [unused] tokens replaced by words" in result.stdout
    written = tmp_path / "other.txt" if flags else path
    filled = vocabulary_module.Vocabulary.load(written).tokens
    assert filled[1:4] == ("zygote", "naive", "[unused3]")
    if flags:
        assert path.read_bytes() == original


@pytest.mark.parametrize(
    "flags, exit_code, sentence",
    [
        (["--vocab_size=2000"], 2, "--input_file: expected text files to learn from"),
        (["--input_file={}/none*"], 1, "No file matches"),
        (["--input_file={}/binary"], 1, "binary:2: not UTF-8"),
        (["--input_file={}/empty"], 1, "There are no words in"),
        (["--input_file={}/text", "--vocab_size=6"], 1, "--vocab_size=6 is too small"),
        # Before the text is read.
        (["--input_file={}/binary", "--vocab_file={}"], 1, "is a folder"),
        (["--input_file={}/binary", "--vocab_file=/proc/x"], 1, "/proc/x: cannot be"),
        (["--input_file={}/te*", "--vocab_file={}/text"], 2, "file of --input_file"),
        (["--input_file={}/text", "--fill_unused={}/out.txt"], 2, "of --fill_unused"),
        (["--input_file={}/text", "--output_file={}/other"], 2, "with --fill_unused"),
        (["--fill_unused={}/words", "--vocab_size=9"], 2, "--vocab_size has no effect"),
        (["--fill_unused={}/words", "--vocab_file={}/vocab"], 1, "tokenizer splits"),
        (["--fill_unused={}/words", "--vocab_file={}/text"], 1, "missing among"),
    ],
)
def test_what_cannot_work_ends_in_one_line(
    run_tool, golden, tmp_path, flags, exit_code, sentence
):
    (tmp_path / "binary").write_bytes(b"text\n\x89PNG\r\n\x1a\n")
    (tmp_path / "empty").write_text("\n \n\u200d\n", encoding="utf-8")
    (tmp_path / "text").write_text("a text of words\n", encoding="utf-8")
    (tmp_path / "words").write_text("new york\n", encoding="utf-8")
    (tmp_path / "vocab").write_bytes((golden / "vocab.txt").read_bytes())
    before = {path.name for path in tmp_path.iterdir()}
    flags = [flag.format(tmp_path) for flag in flags]
    if not any("--vocab_file" in flag for flag in flags):
        flags.append(f"--vocab_file={tmp_path / 'out.txt'}")
    result = run_tool("build_vocabulary", *flags, exit_code=exit_code)
    assert sentence in result.refusal
    assert {path.name for path in tmp_path.iterdir()} == before
