"""What a tool starts from: flags first, then the checkpoint; they have to agree."""

import json

import pytest

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


def test_everything_comes_from_the_checkpoint(released_folder):
    start = starting_point.find(released_folder)
    assert start.config.hidden_act == "gelu"
    assert len(start.vocabulary) == 288
    assert start.do_lower_case is True
    assert start.source.format == "bert"


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
        (
            True,
            False,
            r"--do_lower_case=False, but .* was trained on lowercased te",
        ),
        (
            False,
            True,
            r"--do_lower_case=True, but .* was trained on cased text; pass",
        ),
    ],
)
def test_the_casing_is_the_checkpoints_or_else_what_is_given(
    released_folder, tmp_path, recorded, given, expected
):
    folder = released_folder.rename(tmp_path / "run")
    if recorded is not None:
        (folder / "task.json").write_text(json.dumps({"do_lower_case": recorded}))
    if isinstance(expected, bool):
        start = starting_point.find(folder, do_lower_case=given)
        assert start.do_lower_case is expected
        return
    with pytest.raises(ValueError, match=expected):
        starting_point.find(folder, do_lower_case=given)


def test_text_with_capitals_and_a_vocabulary_without_them_are_reported(
    released_folder, tmp_path, caplog
):
    folder = released_folder.rename(tmp_path / "mine")
    starting_point.find(folder)
    assert caplog.text == ""
    starting_point.find(folder, do_lower_case=False)
    assert "so words with capitals become [UNK]" in caplog.text
    caplog.clear()
    tokens = (folder / "vocab.txt").read_text().splitlines()
    marks = [chr(0x4E00 + i) for i in range(len(tokens))]  # Chinese characters.
    tokens = [t if t[0] == "[" else marks[i] for i, t in enumerate(tokens)]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    starting_point.find(folder, do_lower_case=False)
    assert caplog.text == ""


@pytest.mark.parametrize(
    "name, given, lowered",
    [
        ("mine", None, "does not say whether text is lowercased, .* such as 'The';"),
        ("mine", False, False),
        ("mine", True, "Text is lowercased, but the vocabulary has cased pieces"),
        ("cased_L-2_H-16_A-2", None, False),
        ("uncased_L-2_H-16_A-2", None, True),
    ],
)
def test_an_unknown_casing_is_not_guessed_for_a_cased_vocabulary(
    released_folder, tmp_path, caplog, name, given, lowered
):
    folder = released_folder.rename(tmp_path / name)
    tokens = (folder / "vocab.txt").read_text().splitlines()
    tokens[1] = "The"
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    if given is None and isinstance(lowered, str):
        with pytest.raises(ValueError, match=lowered):
            starting_point.find(folder)
        return
    start = starting_point.find(folder, do_lower_case=given)
    assert start.do_lower_case is (given if isinstance(lowered, str) else lowered)
    assert (lowered in caplog.text) if isinstance(lowered, str) else not caplog.text


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
