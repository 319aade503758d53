"""A vocabulary that does not fit the casing of the text is reported."""

import re

import pytest

from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

LOWERED = ("the", "##s", "cat", "1", ",")
MANY = tuple(f"word{number}" for number in range(99))


@pytest.mark.parametrize(
    "pieces, do_lower_case, expected",
    [
        (LOWERED, True, None),
        ((*LOWERED, "The"), True, "the vocabulary has cased pieces such as 'The'"),
        ((*MANY, "The"), True, "cased pieces such as 'The'"),  # As when fine-tuning.
        ((*LOWERED, "The"), False, None),
        ((*LOWERED, "café"), True, "1 of the 6 .* accents, such as 'café'; use"),
        ((*MANY, "café"), True, None),  # A word that was added.
        ((*LOWERED, "café", "The"), False, None),
        (LOWERED, False, "no piece of the vocabulary has capital letters, so words"),
        (("的", "##中", "1"), False, None),  # No piece has a case.
    ],
)
def test_the_casing_fits_the_vocabulary(pieces, do_lower_case, expected):
    pieces = [*vocabulary_module.SPECIAL_TOKENS, *pieces]
    vocabulary = vocabulary_module.Vocabulary(pieces)
    found = full.pretraining_casing_warning(vocabulary, do_lower_case=do_lower_case)
    assert (found is None) == (expected is None)
    assert re.search(expected or "", found or "")
