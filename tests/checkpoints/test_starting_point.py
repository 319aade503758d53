"""What a tool starts from: flags first, then the checkpoint; they have to agree."""

import json
import shutil

import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import release
from bert_tf.checkpoints import starting_point


@pytest.fixture
def other_files(released_folder, tmp_path):
    """Another activation, and a vocabulary with a word in an unused place."""
    settings = json.loads((released_folder / "bert_config.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps(settings | {"hidden_act": "relu"}))
    tokens = (released_folder / "vocab.txt").read_text().splitlines()
    assert tokens[1] == "[unused1]"
    (tmp_path / "v.txt").write_text("\n".join([tokens[0], "other", *tokens[2:]]) + "\n")
    return {"bert_config_file": tmp_path / "c.json", "vocab_file": tmp_path / "v.txt"}


def test_what_is_given_comes_first(released_folder, other_files, caplog):
    start = starting_point.find(released_folder, **other_files, do_lower_case=True)
    assert start.config.hidden_act == "relu"
    assert start.vocabulary.tokens[1] == "other"
    assert "c.json has hidden_act relu instead of gelu, with which" in caplog.text


@pytest.mark.parametrize("missing", ["bert_config_file", "vocab_file"])
def test_what_is_neither_given_nor_found_is_asked_for(
    released_folder, other_files, missing
):
    given = other_files | {missing: None}
    with pytest.raises(ValueError, match=f"no --init_checkpoint, so --{missing}"):
        starting_point.find(None, **given)
    name = {"bert_config_file": "bert_config.json", "vocab_file": "vocab.txt"}[missing]
    (released_folder / name).unlink()
    with pytest.raises(ValueError, match=rf"no {name} beside .*, so --{missing}"):
        starting_point.find(released_folder, **given)
    start = starting_point.find(released_folder, **other_files)
    assert start.config.hidden_act == "relu"


@pytest.mark.parametrize(
    "recorded, given, expected",
    [
        (None, None, True),
        (None, False, False),
        (False, None, False),
        (False, False, False),
        (True, False, r"--do_lower_case=False, but .* was trained on lowercased te"),
        (False, True, r"--do_lower_case=True, but .* was trained on cased text; pass"),
    ],
)
def test_the_casing_is_the_checkpoints_or_else_what_is_given(
    released_folder, tmp_path, recorded, given, expected
):
    folder = released_folder.rename(tmp_path / "run")
    (folder / "task.json").write_text(json.dumps({"do_lower_case": recorded}))
    if isinstance(expected, bool):
        start = starting_point.find(folder, do_lower_case=given)
        assert start.do_lower_case is expected
        return
    with pytest.raises(ValueError, match=expected):
        starting_point.find(folder, do_lower_case=given)


@pytest.mark.parametrize(
    "name, given, casing, warning",
    [
        ("mine", False, False, ""),
        ("mine", True, True, "Text is lowercased, but the vocabulary has cased pieces"),
        ("cased_L-2_H-16_A-2", None, False, ""),
        ("uncased_L-2_H-16_A-2", None, True, ""),
    ],
)
def test_an_unknown_casing_is_not_guessed_for_a_cased_vocabulary(
    released_folder, tmp_path, caplog, name, given, casing, warning
):
    folder = released_folder.rename(tmp_path / name)
    tokens = (folder / "vocab.txt").read_text().splitlines()
    tokens[1] = "The"
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    assert starting_point.find(folder, do_lower_case=given).do_lower_case is casing
    assert warning in caplog.text
    assert bool(warning) == bool(caplog.text)
    if name == "mine":
        with pytest.raises(ValueError, match=r"does not say .* such as 'The';"):
            starting_point.find(folder)


@pytest.mark.parametrize(
    "num_pieces, is_run, message",
    [
        (287, False, "has 287 pieces, but its embedding table has 288 rows"),
        (289, False, "has 289 pieces, but its embedding table has 288 rows"),
        (287, True, None),  # The table was made larger on purpose.
        (289, True, "has 289 pieces, but the model's vocab_size is 288"),
    ],
)
def test_a_vocabulary_has_the_size_of_its_embedding_table(
    released_folder, num_pieces, is_run, message
):
    tokens = (released_folder / "vocab.txt").read_text().splitlines()
    tokens = [*tokens, "another"][:num_pieces]
    (released_folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    if is_run:
        (released_folder / "task.json").write_text('{"task": "pretraining"}')
    if message is None:
        assert len(starting_point.find(released_folder).vocabulary) == num_pieces
        return
    with pytest.raises(ValueError, match=message):
        starting_point.find(released_folder)


# A vocabulary that differs from the checkpoint's.


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


def test_without_a_vocabulary_beside_it_the_size_decides(
    find, released_folder, tokens, caplog
):
    (released_folder / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"has 100 pieces, .* 288 rows, so it"):
        find(tokens[:100])
    assert find(tokens).warnings == ()  # The only size that raises no doubt.
    assert not caplog.records
    [warning] = find(tokens[:-8]).warnings
    assert "own.txt has 280 pieces, but the embedding table of " in warning
    assert [record.getMessage() for record in caplog.records] == [warning]


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


def test_a_recorded_fingerprint_says_which_vocabulary_is_right(
    find, released_folder, tokens, tmp_path
):
    (tmp_path / "written").mkdir()
    release.write(formats.open_source(released_folder), str(tmp_path / "written"))
    for name in ("task.json", "vocab.txt"):
        shutil.copy(tmp_path / "written" / name, released_folder)
    assert starting_point.find(released_folder).vocabulary.tokens == tuple(tokens)
    (released_folder / "vocab.txt").write_text("\n".join(_swapped(tokens)) + "\n")
    with pytest.raises(ValueError, match="a line was changed, lost or added"):
        starting_point.find(released_folder)
    (released_folder / "vocab.txt").unlink()
    assert find(tokens).vocabulary.tokens == tuple(tokens)
    with pytest.raises(ValueError, match=r"task\.json records another fingerprint"):
        find(_swapped(tokens))
