"""Runs with a time limit."""

import itertools

import pytest
import tensorflow as tf

from bert_tf.optimization import schedules
from bert_tf.training import saving
from bert_tf.training import stopping
from tests import runs


@pytest.mark.parametrize(
    "share_done, warmup_proportion, rate",
    [
        (0.0, 0.1, 0.0),
        (0.05, 0.1, 1.0),
        (0.1, 0.1, 1.8),  # As in 2018, decay is counted from the start.
        (0.75, 0.1, 0.5),
        (1.0, 0.1, 0.0),
        (0.25, 0.0, 1.5),  # No warm-up.
    ],
)
def test_the_rate_is_a_function_of_the_time(share_done, warmup_proportion, rate):
    schedule = schedules.WarmupLinearDecayOfTime(2.0, warmup_proportion)
    schedule.share_done.assign(share_done)
    assert float(schedule(17)) == pytest.approx(rate)
    again = schedules.WarmupLinearDecayOfTime.from_config(schedule.get_config())
    assert again.get_config() == schedule.get_config()


@pytest.fixture
def pretrain(pretrain, monkeypatch):
    """Runs the tool with a clock that advances by a second per reading."""

    def run(**flags):
        ticks = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(stopping, "_now", lambda: float(next(ticks)))
            return pretrain(learning_rate=0.001, iterations_per_loop=1, **flags)

    return run


@pytest.mark.slow
def test_a_run_ends_with_its_time_and_a_later_part_goes_on_from_there(
    pretrain, tmp_path
):
    run = tmp_path / "run"
    pretrain(max_train_minutes=1, warmup_proportion=0.2)
    lines = runs.metrics(run)
    # The clock is read three times per step: 60 seconds are about 20 steps.
    runs.assert_rate_follows_time(lines, warmup=0.2)
    assert lines[-1]["learning_rate"] < 1e-4
    assert saving.read_train_seconds(run) >= 60
    assert tf.train.latest_checkpoint(str(run)).endswith(f"-{lines[-1]['step']}")

    # The time is up: the same command has nothing left to do.
    pretrain(max_train_minutes=1, warmup_proportion=0.2)
    assert runs.metrics(run) == lines

    # Of twice the time, half is over.
    pretrain(max_train_minutes=2, warmup_proportion=0.2)
    added = runs.metrics(run)[len(lines) :]
    assert added[0]["step"] == lines[-1]["step"] + 1
    assert added[0]["learning_rate"] == pytest.approx(0.5e-3, rel=0.1)


def test_calls_take_twice_as_many_steps_until_they_last_a_second():
    pace = stopping.Pace(batch_size=8)
    lengths = []
    for _ in range(6):
        lengths.append(pace.num_steps)
        pace.record_call(pace.num_steps, seconds=0.1 * pace.num_steps)
    assert lengths == [1, 2, 4, 8, 8, 8]


@pytest.mark.parametrize(
    "num_steps, logged",
    [
        (3, [1, 2, 3]),  # All of a short run.
        (250, range(5, 251, 5)),
        (10**6, range(100, 10**6 + 1, 100)),  # As in the release.
    ],
)
def test_every_curve_has_fifty_points(num_steps, logged):
    found = [s for s in range(1, num_steps + 1) if stopping.is_logged(s, num_steps)]
    assert found == list(logged)
