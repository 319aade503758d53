"""Fine-tuning runs that are killed and resumed by the same command.

`tests/tasks/test_contract.py` stops and resumes a run of every task.
"""

import json
import signal
import subprocess
import sys

import pytest

from bert_tf.checkpoints.release import bundle
from tests import ring
from tests import runs

NUM_STEPS = 20
# Saving at step 10 waits until the checkpoint of step 5 is written.
KILLED_AT = 12
BATCH_SIZE = 4


def squad_files(folder):
    """Twenty questions, which are five batches of four."""
    context = "The river rises near Ulm and was bridged in 1902."
    answers = [{"text": "near Ulm", "answer_start": 16}]
    paragraphs = [
        {
            "context": context,
            "qas": [{"id": str(i), "question": "Where?", "answers": answers}],
        }
        for i in range(20)
    ]
    path = folder / "squad.json"
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return [f"--train_file={path}", f"--predict_file={path}", "--max_query_length=4"]


def column_files(folder):
    sentences = "Anna B-PER\nis O\nin O\nLund B-LOC\n\nRod B-PER\nis O\n\n" * 10
    for name in ("train", "dev", "test"):
        (folder / f"{name}.txt").write_text(sentences)
    return [f"--data_dir={folder}"]


# Tool -> its files, and what it writes in the end.
TOOLS = {
    "run_squad": (squad_files, ("predictions.json", "eval_results.txt")),
    "run_ner": (column_files, ("predictions.jsonl", "eval_results.txt")),
}


@pytest.fixture(params=["run_ner", ring.slow("run_squad")])
def tool(request):
    return request.param


@pytest.fixture
def command(tool, golden, dropout_config, tmp_path):
    """Returns the flags of a run of `NUM_STEPS` steps into a folder."""
    given = TOOLS[tool][0](tmp_path)

    def flags(name, *actions):
        return [
            *given,
            *(f"--{action}" for action in actions),
            f"--bert_config_file={dropout_config}",
            f"--vocab_file={golden / 'vocab.txt'}",
            f"--output_dir={tmp_path / name}",
            "--max_seq_length=32",
            f"--train_batch_size={BATCH_SIZE}",
            f"--num_train_epochs={NUM_STEPS * BATCH_SIZE / 20}",
            "--save_checkpoints_steps=5",
            "--iterations_per_loop=1",
        ]

    return flags


ALL = ("do_train", "do_eval", "do_predict")


def test_a_run_killed_while_it_trains_ends_as_an_uninterrupted_one(
    tool, command, run_tool, tmp_path, project_root, self_signalling
):
    run_tool(tool, *command("whole", *ALL))
    program = self_signalling(tool, KILLED_AT, signal.SIGKILL)
    killed = subprocess.run(
        [sys.executable, "-c", program, *command("killed", *ALL)],
        cwd=project_root,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    reached = bundle.latest(str(tmp_path / "killed"))
    assert 0 < int(reached.rpartition("-")[2]) <= KILLED_AT

    run_tool(tool, *command("killed", *ALL))
    assert int(runs.tensors(tmp_path / "whole")["global_step"]) == NUM_STEPS
    runs.assert_same_tensors(tmp_path / "killed", tmp_path / "whole")
    for name in TOOLS[tool][1]:
        texts = [(tmp_path / one / name).read_text() for one in ("whole", "killed")]
        assert texts[0] == texts[1], name
