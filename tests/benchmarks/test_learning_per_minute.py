"""learning_per_minute: rates of each library, and the table of its runs."""

import argparse
import importlib
import json
import pathlib
import sys

import pytest


@pytest.fixture
def learning(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    yield importlib.import_module("learning_per_minute")
    sys.modules.pop("learning_per_minute")


def given(**values):
    return argparse.Namespace(
        **{
            "peers": "bert_tf,keras_hub",
            "learning_rate": 1e-4,
            "rates": ["bert_tf=1e-3,2e-3"],
            "seeds": [1, 2],
        }
        | values
    )


def test_libraries_without_rates_of_their_own_have_the_common_one(learning):
    found = learning.rates_of_peers(given())
    assert found == {"bert_tf": [1e-3, 2e-3], "keras_hub": [1e-4]}


def test_rates_of_an_unknown_library_are_refused(learning):
    with pytest.raises(SystemExit, match="--rates torch=1: expected PEER=RATE,RATE"):
        learning.rates_of_peers(given(rates=["torch=1"]))


def test_the_table_compares_the_best_rates_by_their_means(learning):
    losses = {
        ("bert_tf", 1e-3): (6.0, 6.2),
        ("bert_tf", 2e-3): (5.5, 7.5),  # The best run, but not the best mean.
        ("keras_hub", 1e-4): (6.5, 6.7),
    }
    runs = [
        {
            "peer": peer,
            "learning_rate": rate,
            "masked_lm_loss": loss,
            "steps": 10,
            "rows_per_second": 2.0,
            "masked_lm_accuracy": 0.1,
            "mode": "float32",
        }
        for (peer, rate), several in losses.items()
        for loss in several
    ]
    more = dict.fromkeys(
        ("num_hidden_layers", "hidden_size", "batch_size", "max_seq_length", "minutes"),
        1,
    )
    text = learning.table(given(**more, config_overrides=""), runs)
    assert "| bert_tf | 0.001 | 10 | 2 | 6.1 | 0.1 | float32 |" in text
    assert "bert_tf is 0.500 nats below the best other library (keras_hub)" in text


def test_records_of_other_texts_are_removed(learning, tmp_path):
    task = dict.fromkeys(learning.RECORD_SETTINGS, 1)
    task_file, records = tmp_path / "task.json", tmp_path / "train.tfrecord"

    def remains(**changed):
        records.touch()
        options = given(output_dir=str(tmp_path), **task | changed)
        learning.remove_other_records(str(task_file), options)
        return records.exists()

    assert not remains()  # Nothing says what they were made of.
    task_file.write_text(json.dumps(task | {"minutes": 3}))
    assert remains()
    assert not remains(train_text=2)
    assert not task_file.exists()


def test_finished_runs_are_kept_unless_their_settings_change(
    learning, tmp_path, monkeypatch
):
    calls = []

    def train(command, **unused):
        calls.append(command)
        task = json.loads(pathlib.Path(command[-1]).read_text(encoding="utf-8"))
        with open(f"{task['output_dir']}/keras_hub.json", "w") as file:
            json.dump({"steps": 1}, file)

    monkeypatch.setattr(learning.subprocess, "run", train)
    task_file = tmp_path / "task.json"
    options = given(output_dir=str(tmp_path), hugging_face_python="python")
    for minutes in (1, 1, 2):  # Only the last call has other settings.
        task_file.write_text(json.dumps({"minutes": minutes}))
        learning.run_peer(options, str(task_file), "keras_hub", 1e-4, 7)
    assert len(calls) == 2
