import numpy as np
import pytest

from bert_tf.optimization import schedules


@pytest.mark.parametrize(
    "warmup, step, expected",
    [
        (4, 1, 0.25),  # The first step of the warm-up.
        (4, 2, 0.5),  # Halfway up.
        (4, 3, 0.75),  # The last step below the full rate.
        (4, 4, 0.6),  # Decay is counted from the start of the run, so the rate drops.
        (4, 9, 0.1),
        (4, 10, 0.0),  # The last step of the run moves nothing.
        (4, 11, 0.0),  # Never below 0.
        (0, 1, 0.9),  # Without a warm-up, it decays from the first step.
    ],
)
def test_rate_rises_to_the_end_of_warmup_and_then_decays(warmup, step, expected):
    schedule = schedules.WarmupLinearDecay(1.0, 10, warmup)
    num_finished_steps = step - 1
    assert float(schedule(num_finished_steps)) == pytest.approx(expected, abs=1e-7)


def test_schedule_is_rebuilt_from_its_config():
    schedule = schedules.WarmupLinearDecay(1e-3, 10, 4)
    copy = schedules.WarmupLinearDecay.from_config(schedule.get_config())
    steps = range(12)
    np.testing.assert_array_equal(
        [float(schedule(step)) for step in steps], [float(copy(step)) for step in steps]
    )


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
