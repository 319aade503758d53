"""The number of training steps of every task."""

import pytest

from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import run as fine_tuning_run


def create(**values):
    return fine_tuning_options.TaskOptions(
        **{"output_dir": "run", "do_train": True} | values
    )


@pytest.mark.parametrize(
    "num_rows, batch_size, epochs, num_steps",
    [
        (3668, 32, 3.0, 343),  # MRPC, as in the release's README.
        (10, 4, 1.0, 2),  # The last, incomplete batch is dropped.
        (10, 4, 2.0, 5),  # Once for all epochs: batches cross their borders.
        (10, 4, 0.5, 1),  # Epochs may be fractions.
        (4, 4, 1.0, 1),
    ],
)
def test_the_number_of_steps_is_that_of_2018(num_rows, batch_size, epochs, num_steps):
    options = create(train_batch_size=batch_size, num_train_epochs=epochs)
    assert fine_tuning_run.num_train_steps(num_rows, options) == num_steps


def test_less_than_one_batch_is_refused_with_the_unit():
    sentence = r"7 questions × 0.5 epochs do not fill one batch of 4; lower --train_bat"
    with pytest.raises(ValueError, match=sentence):
        fine_tuning_run.num_train_steps(
            7, create(train_batch_size=4, num_train_epochs=0.5), unit="questions"
        )
