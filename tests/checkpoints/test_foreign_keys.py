"""The table of other libraries' keys in docs/checkpoints.md is that of the code."""

import pathlib
import re

import pytest

from bert_tf.checkpoints import foreign_keys

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "checkpoints.md"


@pytest.mark.parametrize("file", foreign_keys.KNOWN)
def test_the_page_says_what_happens_to_every_key(file):
    _, _, part = PAGE.read_text().partition(f"| **{file}** |")
    rows = part.split("| **")[0].splitlines()[1:]
    cells = [row.split(" | ")[0] for row in rows if not row.startswith("| any other")]
    assert sorted(re.findall("`(.+?)`", "".join(cells))) == sorted(
        foreign_keys.KNOWN[file]
    )


def test_only_unknown_keys_with_a_value_are_reported():
    values = {"vocab_size": 3, "use_cache": True, "rope_theta": 10, "x": None, "y": []}
    [sentence] = foreign_keys.unknown_keys("config.json", values)
    assert sentence.startswith("config.json has rope_theta, which bert_tf does not kno")
