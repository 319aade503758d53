"""Estimates of a search count every run at its own size."""

import pytest

from bert_tf.fine_tuning import trial_estimates
from bert_tf.fine_tuning import trial_options
from bert_tf.training import estimates


@pytest.fixture
def search(tmp_path):
    """Returns a function from flags to the report and the models that it built."""

    def create(**values):
        options = trial_options.TrialOptions(
            output_dir=str(tmp_path), dry_run=True, **values
        )
        built = []

        def build(trial):
            built.append(trial.dtype)
            return estimate

        return trial_estimates.report(options.trials(), build).splitlines(), built

    def estimate(options):
        steps = int(96 / options.train_batch_size * options.num_train_epochs)
        return estimates.Estimate(
            num_parameters=1000,
            num_train_steps=steps,
            flops_per_step=10.0 * options.train_batch_size,
            memory_bytes=2**26 * options.train_batch_size,
            seconds=60.0 * steps,
        )

    return create


def test_restarts_are_one_model_so_many_times(search):
    report, built = search(num_restarts=5, num_train_epochs=2.0)
    assert report == [
        "runs              5",
        "parameters        1,000",
        "steps             6 per run, 30 in total",
        "FLOPs per step    320",
        "memory per device 2.00 GiB at most (estimate)",
        "time              0 h 30 min 0 s for all runs (at this machine's speed of "
        "matrix multiplication; the runs will be slower)",
    ]
    assert built == ["float32"]


def test_each_run_of_a_sweep_has_its_own_batch_and_epochs(search):
    sweep = "train_batch_size=16,32;learning_rate=1e-5,2e-5;num_train_epochs=1,3"
    report, built = search(sweep=sweep)
    assert report[0] == "runs              8"
    # 2 × (6 + 18 + 3 + 9)
    assert report[2] == "steps             3 to 18 per run, 72 in total"
    assert report[3] == "FLOPs per step    160 to 320"
    assert report[4].startswith("memory per device 2.00 GiB at most")
    assert report[5].startswith("time              1 h 12 min 0 s for all runs")
    assert built == ["float32"]


def test_a_model_is_built_for_all_that_an_estimate_depends_on(search):
    sweep = "learning_rate=1e-5,2e-5;dtype=float32,mixed_bfloat16"
    report, built = search(sweep=sweep)
    assert report[0] == "runs              4"
    assert built == ["float32", "mixed_bfloat16"]
