"""Shares of chosen pieces: the defaults, and what is refused."""

import pytest

from bert_tf import options as options_module
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import release_masks


def created(**values):
    return pretraining_data_options.CreatePretrainingDataOptions(
        input_file="a", output_file="b", vocab_file="c", **values
    )


def test_the_default_is_the_papers():
    assert created().shares == release_masks.MaskShares(mask=0.8, same=0.1, random=0.1)
    # What the release draws of the pieces that are not masked; exactly, since its
    # records are to come out byte for byte.
    assert created().shares.same_of_rest == 0.5
    assert release_masks.MaskShares(mask=1.0, same=0.0, random=0.0).same_of_rest == 0.0


@pytest.mark.parametrize(
    "shares, said",
    [
        ({"mask_share": 1.0}, "add up to 1.2, expected 1; set all three"),
        ({"random_share": 0.0, "same_share": 0.1}, "add up to 0.9"),
        ({"random_share": -0.1, "same_share": 0.3}, "--random_share"),
    ],
)
def test_shares_that_do_not_add_up_are_refused(shares, said):
    with pytest.raises(options_module.OptionError, match=said):
        created(**shares)
