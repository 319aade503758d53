import json
import math
import os

import pytest
import tensorflow as tf

from bert_tf import locks
from bert_tf.pretraining import options as pretraining_options
from bert_tf.training import run_folder


@pytest.fixture
def folder(tmp_path):
    folder = run_folder.RunFolder(str(tmp_path / "run"))
    folder.create()
    return folder


def logged(folder):
    return [(line["step"], line["loss"]) for line in folder.read_metrics()]


def test_a_metrics_line_cut_off_by_a_kill_is_dropped(folder):
    folder.log(1, {"loss": 1.0})
    with open(os.path.join(folder.path, "metrics.jsonl"), "a") as file:
        file.write('{"step": 2, "lo')
    assert logged(folder) == [(1, 1.0)]
    folder.cut_metrics(1)
    folder.log(2, {"loss": 2.0})
    assert logged(folder) == [(1, 1.0), (2, 2.0)]


@pytest.mark.parametrize(
    "damaged", ["{", "[]", '{"step": "2"}', '{"step": 2, "loss": "x"}', "[" * 99999]
)
def test_other_damaged_metrics_lines_are_left_out_with_a_warning(
    folder, damaged, caplog
):
    folder.log(1, {"loss": 1.0})
    with open(os.path.join(folder.path, "metrics.jsonl"), "a") as file:
        file.write(damaged + "\n")
    folder.log(3, {"loss": 3.0})
    assert logged(folder) == [(1, 1.0), (3, 3.0)]
    [line] = caplog.messages
    assert "metrics.jsonl:2 is damaged" in line
    assert folder.last_loss() == 3.0


def test_nan_is_null_in_metrics(folder):
    folder.log(1, {"loss": 1.0, "eval_pearson": float("nan")})
    with open(os.path.join(folder.path, "metrics.jsonl")) as file:
        assert json.loads(file.read())["eval_pearson"] is None
    with open(os.path.join(folder.path, "metrics.jsonl"), "a") as file:
        file.write('{"step": 2, "eval_pearson": NaN}\n')  # Of earlier versions.
    lines = folder.read_metrics()
    assert [math.isnan(line["eval_pearson"]) for line in lines] == [True, True]


def test_eval_results_are_sorted_lines_of_key_and_value(folder):
    folder.write_eval_results({"loss": 0.5, "global_step": 7, "eval_accuracy": 0.25})
    with open(os.path.join(folder.path, "eval_results.txt")) as file:
        assert file.read() == "eval_accuracy = 0.25\nglobal_step = 7\nloss = 0.5\n"


def test_tensorboard_files_hold_the_scalars_of_training_and_evaluation(folder):
    folder.log(5, {"loss": 0.5})
    folder.log(5, {"eval_loss": 0.75}, tag="eval")
    folder.close()

    def scalars(path):
        [name] = [name for name in os.listdir(path) if name.startswith("events")]
        return {
            value.tag: (event.step, float(tf.make_ndarray(value.tensor)))
            for event in tf.compat.v1.train.summary_iterator(os.path.join(path, name))
            for value in event.summary.value
            if value.metadata.plugin_data.plugin_name == "scalars"
        }

    assert scalars(folder.path) == {"loss": (5, 0.5)}
    assert scalars(os.path.join(folder.path, "eval")) == {"eval_loss": (5, 0.75)}


def test_of_several_workers_only_the_chief_locks_the_folder(folder, monkeypatch):
    monkeypatch.setattr(locks, "_GRACE_SECONDS", 0.0)
    options = pretraining_options.RunPretrainingOptions(
        input_file="a",
        output_dir=folder.path,
        bert_config_file="b",
        do_train=True,
        device="multi_worker",
    )

    def locked(index):
        cluster = {"worker": ["localhost:1", "localhost:2"]}
        task = {"type": "worker", "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
        return run_folder.locked(options)

    with locked(0):
        with locked(1):
            pass
        with pytest.raises(OSError, match="is in use"), locked(0):
            pass
