"""learning_per_minute: rates of each library, and the table of its runs."""

import argparse
import importlib
import json
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
            "peers": "bert_tf,hugging_face",
            "learning_rate": 1e-4,
            "rates": ["bert_tf=1e-3,2e-3"],
            "seeds": [1, 2],
        }
        | values
    )


def test_libraries_without_rates_of_their_own_have_the_common_one(learning):
    rates = learning.rates_of_peers(given())
    assert rates == {"bert_tf": [1e-3, 2e-3], "hugging_face": [1e-4]}


def test_rates_of_an_unknown_library_are_refused(learning):
    with pytest.raises(SystemExit, match="--rates torch=1: expected PEER=RATE,RATE"):
        learning.rates_of_peers(given(rates=["torch=1"]))


def test_the_table_compares_the_best_rates_by_their_means(learning):
    losses = {
        ("bert_tf", 1e-3): (6.0, 6.2),
        ("bert_tf", 2e-3): (5.5, 7.5),  # The best run, but not the best mean.
        ("hugging_face", 1e-4): (6.5, 6.7),
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
    assert "bert_tf is 0.500 nats below the best other library (hugging_face)" in text


def test_finished_runs_are_kept_unless_their_settings_change(
    learning, tmp_path, monkeypatch
):
    calls = []

    def train(python, peer, task):
        calls.append(task["seed"])
        with open(f"{task['output_dir']}/result.json", "w") as file:
            json.dump({"steps": 1}, file)

    monkeypatch.setattr(learning, "run_process", train)
    options = given(output_dir=str(tmp_path), hugging_face_python="python")
    for minutes in (1, 1, 2):  # Only the last call has other settings.
        learning.run_peer(options, {"minutes": minutes}, "hugging_face", 1e-4, 7)
    assert len(calls) == 2
