"""A vocabulary that differs from the checkpoint's is refused, or leads to a warning."""

import logging
import shutil

import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import release
from bert_tf.checkpoints import starting_point

NUM_PIECES = 288  # Of the recorded checkpoint.


@pytest.fixture
def tokens(golden):
    return (golden / "vocab.txt").read_text().splitlines()


@pytest.fixture
def find(released_folder, tmp_path):
    """Finds the starting point with a vocabulary of the given tokens."""

    def find(tokens):
        (tmp_path / "own.txt").write_text("".join(f"{token}\n" for token in tokens))
        return starting_point.find(released_folder, vocab_file=tmp_path / "own.txt")

    return find


def _swapped(tokens):
    return [*tokens[:-2], tokens[-1], tokens[-2]]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t[:-1], "missing here, among 287 pieces .1 of 288 ids differ"),
        (lambda t: [*t[:50], *t[51:]], r"id 50 is .* \(238 of 288 ids differ\)"),
        (_swapped, r"id 286 is .* \(2 of 288 ids differ\); omit --vocab_file"),
        # An added word shifts all the following ids.
        (lambda t: [*t[:50], "new", *t[50:-1]], r"id 50 is .* 'new' here"),
        (lambda t: [*t[:-1], "[unused7]"], "id 287 is .* '.unused7.' here"),
    ],
)
def test_another_vocabulary_than_the_one_beside_the_checkpoint_is_refused(
    find, tokens, change, message
):
    with pytest.raises(ValueError, match=message) as caught:
        find(change(tokens))
    assert "own.txt is not the vocabulary of" in str(caught.value)


def test_words_in_unused_places_are_welcome(find, tokens, caplog):
    assert tokens[1:3] == ["[unused1]", "[unused2]"]
    own = [tokens[0], "covid", "mrna", *tokens[3:]]
    assert find(own).vocabulary.tokens == tuple(own)
    assert not caplog.records


@pytest.mark.parametrize(
    "num_pieces, warning",
    [
        (NUM_PIECES, None),  # The only size that raises no doubt.
        (NUM_PIECES - 8, "has 280 pieces, but the embedding table of .* has 288 rows"),
    ],
)
def test_without_a_vocabulary_beside_it_the_size_decides(
    find, released_folder, tokens, caplog, num_pieces, warning
):
    (released_folder / "vocab.txt").unlink()
    start = find(tokens[:num_pieces])
    assert len(start.warnings) == (warning is not None)
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * len(
        start.warnings
    )
    if warning is not None:
        assert start.warnings[0] in caplog.text


def test_a_much_smaller_vocabulary_is_refused(find, released_folder, tokens):
    (released_folder / "vocab.txt").unlink()
    message = "has 100 pieces, but the embedding table .* 288 rows, so it is not"
    with pytest.raises(ValueError, match=message):
        find(tokens[:100])


def test_a_vocabulary_of_a_padded_hugging_face_table_is_compared(
    project_root, tmp_path
):
    folder = project_root / "tests/checkpoints/foreign/hugging_face/sharded"
    own = starting_point.find(folder).vocabulary
    own.save(tmp_path / "own.txt")
    given = starting_point.find(folder, vocab_file=tmp_path / "own.txt")
    assert given.vocabulary.fingerprint == own.fingerprint
    (tmp_path / "own.txt").write_text("\n".join(_swapped(own.tokens)) + "\n")
    with pytest.raises(ValueError, match=r"\(2 of 40 ids differ\)"):
        starting_point.find(folder, vocab_file=tmp_path / "own.txt")


@pytest.fixture
def written(released_folder, tmp_path):
    """A checkpoint as we write it, with the fingerprint of its vocabulary."""
    (tmp_path / "written").mkdir()
    source = formats.open_source(str(released_folder))
    release.write(source, str(tmp_path / "written"))
    return tmp_path / "written"


@pytest.mark.parametrize("change", [lambda t: [*t[:50], *t[51:]], _swapped])
def test_a_vocabulary_that_changed_since_it_was_recorded_is_refused(
    written, tokens, change
):
    assert starting_point.find(written).vocabulary.tokens == tuple(tokens)
    (written / "vocab.txt").write_text("\n".join(change(tokens)) + "\n")
    with pytest.raises(ValueError, match="a line was changed, lost or added"):
        starting_point.find(written)


def test_the_fingerprint_also_says_whether_a_given_vocabulary_is_right(
    written, tokens, tmp_path
):
    shutil.move(written / "vocab.txt", tmp_path / "own.txt")
    start = starting_point.find(written, vocab_file=tmp_path / "own.txt")
    assert len(start.vocabulary) == NUM_PIECES
    (tmp_path / "own.txt").write_text("\n".join(_swapped(tokens)) + "\n")
    with pytest.raises(ValueError, match=r"task\.json records another fingerprint"):
        starting_point.find(written, vocab_file=tmp_path / "own.txt")
