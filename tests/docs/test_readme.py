"""The examples of the README run, with a tiny model in place of BERT-Base."""

import pathlib
import re
import shlex

import numpy as np
import pytest

import bert_tf
from bert_tf import subcommands

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def block(heading, language):
    """Returns the first code block of a language below a heading."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", TEXT, re.M | re.S)[1]
    return re.search(rf"^```{language}\n(.*?)^```", section, re.M | re.S)[1]


@pytest.fixture(scope="module")
def folder(copy_release, tmp_path_factory):
    """Working folder with a tiny model and a CSV file of reviews."""
    folder = tmp_path_factory.mktemp("readme")
    copy_release(folder / "tiny")
    rows = [f"{word} film {i},{word}\n" for i in range(40) for word in ("good", "bad")]
    (folder / "reviews.csv").write_text("text,label\n" + "".join(rows))
    (folder / "novels").mkdir()
    stories = "She opened the door. The house was dark. She lit a lamp. He came in.\n\n"
    for number in range(3):
        (folder / "novels" / f"{number}.txt").write_text(stories * 40)
    return folder


def run(commands, run_tool, *small):
    """Runs each command of a block; returns what the last one printed."""
    for line in re.sub(r"\\\n\s*", " ", commands).splitlines():
        name, *flags = shlex.split(line)[1:]
        tool = subcommands.BY_NAME[name].tool
        given = [f for f in small if f.partition("=")[0] in SMALL_FLAGS.get(tool, ())]
        replaced = {f.partition("=")[0] for f in given}
        flags = [f for f in flags if f.partition("=")[0] not in replaced]
        done = run_tool(tool, *flags, *given)
    return done.stdout


SMALL_FLAGS = {
    "run_classifier": ("--num_train_epochs", "--max_seq_length"),
    "build_vocabulary": ("--vocab_size",),
    "run_pretraining": ("--max_train_minutes", "--model_size", "--max_seq_length"),
}


def test_a_csv_file_becomes_a_served_classifier(folder, run_tool, monkeypatch):
    monkeypatch.chdir(folder)
    commands = block("A CSV file to a served classifier", "bash")
    commands = commands.replace("bert-base-uncased", "tiny")
    small = ("--num_train_epochs=1", "--max_seq_length=16")
    answer = run(commands, run_tool, *small)
    assert '"label"' in answer
    source = block("A CSV file to a served classifier", "python")
    names = {}
    # The tiny model has 64 positions.
    source = source.replace("validation=0.1", "validation=0.1, max_seq_length=16")
    exec(source.replace("bert-base-uncased", "tiny"), names)
    [answer] = names["model"].predict(["A fine film."])
    assert answer["label"] in ("good", "bad")


def test_a_hugging_face_folder_works_in_tensorflow(folder, run_tool, monkeypatch):
    monkeypatch.chdir(folder)
    run_tool(
        "convert_checkpoint",
        "--source=tiny",
        "--target=hugging_face_folder",
        "--target_format=hugging_face",
        "--do_lower_case",
    )
    names = {}
    exec(block("A Hugging Face folder in TensorFlow", "python"), names)
    assert names["classifier"].output_shape == (None, 2)
    vectors = bert_tf.embed("hugging_face_folder", ["Rain.", "Sun."])
    assert np.isfinite(vectors).all()


def test_own_text_becomes_a_pretrained_model(folder, run_tool, monkeypatch):
    pytest.importorskip("sentencex")
    monkeypatch.chdir(folder)
    small = ("--vocab_size=130", "--max_train_minutes=0.02", "--model_size=L-1_H-64")
    answer = run(block("Pretrain on your own text", "bash"), run_tool, *small)
    assert "She opened the" in answer
