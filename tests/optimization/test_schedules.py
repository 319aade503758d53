import numpy as np
import pytest

from bert_tf.optimization import schedules


@pytest.mark.parametrize(
    "step, expected",
    [
        (0, 0.0),  # The first step of a warm-up moves nothing.
        (2, 0.5),  # Halfway up.
        (3, 0.75),  # The last step of the warm-up.
        (4, 0.6),  # Decay is counted from step 0: the rate drops.
        (9, 0.1),
        (10, 0.0),
        (11, 0.0),  # Never below 0.
    ],
)
def test_rate_rises_to_the_end_of_warmup_and_then_decays_from_step_0(step, expected):
    schedule = schedules.WarmupLinearDecay(1.0, 10, 4)
    assert float(schedule(step)) == pytest.approx(expected, abs=1e-7)


def test_without_warmup_the_first_rate_is_the_full_one():
    assert float(schedules.WarmupLinearDecay(0.5, 10, 0)(0)) == 0.5


def test_schedule_is_rebuilt_from_its_config():
    schedule = schedules.WarmupLinearDecay(1e-3, 10, 4)
    copy = schedules.WarmupLinearDecay.from_config(schedule.get_config())
    steps = range(12)
    np.testing.assert_array_equal(
        [float(schedule(step)) for step in steps], [float(copy(step)) for step in steps]
    )
