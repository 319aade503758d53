import itertools

import pytest

from bert_tf.tokenization import in_graph_words
from bert_tf.tokenization import wordpiece

LAST_ASSIGNED = 0x3134A  # In Unicode 14.0, apart from planes 14 to 16.
OPTIONS = list(itertools.product([True, False], repeat=2))


def becomes(table, code):
    """Returns what a code point alone becomes: a list of words."""
    start = table.entry_pages[code >> in_graph_words.PAGE_BITS]
    entry = int(table.entries[start + code % (1 << in_graph_words.PAGE_BITS)])
    if entry & (in_graph_words.SPACE | in_graph_words.DROPPED):
        return []
    value = entry >> in_graph_words.FLAG_BITS
    if entry & in_graph_words.SEVERAL:
        first, last = table.expansion_splits[value : value + 2]
        return ["".join(map(chr, table.expansions[first:last]))]
    return [chr(code + value)]


@pytest.mark.parametrize("do_lower_case, strip_accents", OPTIONS)
def test_every_code_point_becomes_what_the_plain_tokenizer_says(
    do_lower_case, strip_accents
):
    options = {"do_lower_case": do_lower_case, "strip_accents": strip_accents}
    table = in_graph_words.code_point_table(**options)
    tokenizer = wordpiece.BasicTokenizer(**options)
    for code in range(in_graph_words.NUM_CODE_POINTS):
        if code > LAST_ASSIGNED and code % 64:
            continue  # Unassigned, variation selectors, private use: all alike.
        assert becomes(table, code) == tokenizer.tokenize(chr(code)), hex(code)


def test_the_tables_are_small_enough_for_every_saved_model():
    table = in_graph_words.code_point_table(do_lower_case=True, strip_accents=True)
    assert sum(array.nbytes for array in vars(table).values()) < 500_000
