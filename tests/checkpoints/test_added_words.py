"""Words added to a vocabulary, in every format, with rows that make sense."""

import pathlib

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import added_words
from bert_tf.checkpoints import formats
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import workflow as conversion_workflow
from tests import ring
from tests.checkpoints import sources

FOREIGN = pathlib.Path(__file__).parent / "foreign"
WORD_TABLE = "bert/embeddings/word_embeddings"
OUTPUT_BIAS = "cls/predictions/output_bias"
NUM_PIECES = 288  # Of the recorded checkpoint.
# "lighthouses" was lighthouse ##s, and "keeping" was keep ##ing.
WORDS = ["lighthouses", "", "Kéeping", "the", "keeping"]


@pytest.fixture
def tokenizer(golden):
    return bert_tf.FullTokenizer(golden / "vocab.txt")


@pytest.fixture
def convert(tmp_path):
    """Converts with words added: convert(source, target_format, words)."""

    def convert(source, target_format="bert", words=WORDS, **changes):
        (tmp_path / "words.txt").write_text("\n".join(words))
        target = tmp_path / f"grown_{target_format}"
        options = conversion_options.ConvertCheckpointOptions(
            source=str(source),
            target=str(target),
            target_format=target_format,
            add_words=str(tmp_path / "words.txt"),
            **changes,
        )
        return target, conversion_workflow.run(options)

    return convert


def weights_of(path):
    return sources.arrays_of(formats.open_source(path))


def assert_grown(before, after, pieces):
    """Checks that only the tables with a row per piece changed, and how."""
    for name, weight in after.items():
        expected = before[name]
        if name in (WORD_TABLE, OUTPUT_BIAS):
            means = [expected[ids].mean(axis=0, keepdims=True) for ids in pieces]
            expected = np.concatenate([expected, *means])
        np.testing.assert_array_equal(weight, expected, err_msg=name)


def test_new_words_are_normalized_and_have_the_pieces_that_they_had(tokenizer):
    added = added_words.find_new(tokenizer, WORDS, source="words.txt")
    assert [word.token for word in added.words] == ["lighthouses", "keeping"]
    assert added.vocabulary.tokens == (
        *tokenizer.vocabulary.tokens,
        "lighthouses",
        "keeping",
    )
    assert [tokenizer.convert_ids_to_tokens(ids) for ids in added.pieces] == [
        ["lighthouse", "##s"],
        ["keep", "##ing"],
    ]
    assert list(added.notes()) == [
        "added 2 words with the ids 288 to 289; each row is the mean of the rows of "
        "the pieces that the word had",
        "added 1 word as the tokenizer normalizes: Kéeping as keeping",
        "skipped 1 word that the vocabulary already has: the",
    ]


@pytest.mark.parametrize(
    "word, message",
    [
        ("covid-19", "splits 'covid-19' into 3 words (covid - 19); a token must be"),
        ("中国", "into 2 words (中 国)"),
        ("\u200b", "into 0 words; a token must"),  # Only a deleted character.
        ("##ology", "is a piece for the inside of words"),
        ("a" * 201, "has 201 characters, but the tokenizer replaces words of more"),
    ],
)
def test_what_cannot_be_a_word_is_refused_with_its_place(tokenizer, word, message):
    with pytest.raises(ValueError, match=r"^words\.txt:3: ") as caught:
        added_words.find_new(tokenizer, ["keeping", "", word], source="words.txt")
    assert message in str(caught.value)


def test_padding_rows_are_used_first(tokenizer):
    words = ["lighthouses", "keeping"]
    added = added_words.find_new(tokenizer, words, source="words.txt")
    table = np.arange(NUM_PIECES + 3.0)
    grown = added.grow(table)
    assert added.num_rows(NUM_PIECES + 3) == len(grown) == NUM_PIECES + 3
    expected = [table[list(ids)].mean() for ids in added.pieces]
    np.testing.assert_array_equal(grown[NUM_PIECES:], [*expected, table[-1]])


@pytest.mark.parametrize(
    "name, flags",
    [
        ("hugging_face/own_tokenizer", {}),  # Keeps accents and some tokens.
        # The Model Garden stores no vocabulary.
        ring.slow("model_garden/pretrainer", {"do_lower_case": True}),
    ],
)
def test_checkpoints_of_other_libraries_grow(convert, golden, tmp_path, name, flags):
    path = FOREIGN / name
    before = formats.open_source(path)
    if (vocabulary := before.vocabulary) is None:
        tokens = (golden / "vocab.txt").read_text().splitlines(keepends=True)
        vocab_file = tmp_path / "vocab.txt"
        vocab_file.write_text("".join(tokens[: before.config.vocab_size]))
        vocabulary = bert_tf.Vocabulary.load(vocab_file)
        flags = {**flags, "vocab_file": str(vocab_file)}
    tokenizer = bert_tf.FullTokenizer(vocabulary, **before.text.tokenizer_arguments())
    target, _ = convert(path, words=["zyxzyx"], **flags)
    after = formats.open_source(target)
    assert after.vocabulary.tokens == (*vocabulary.tokens, "zyxzyx")
    assert before.text.to_dict().items() <= after.text.to_dict().items()
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize("zyxzyx"))
    assert after.config.vocab_size == before.config.vocab_size + 1
    assert_grown(weights_of(path), weights_of(target), [ids])


def test_a_file_without_words_is_refused(tokenizer):
    with pytest.raises(ValueError, match=r"^words\.txt: there are no words"):
        added_words.find_new(tokenizer, ["", ""], source="words.txt")


@pytest.mark.parametrize(
    "path, message",
    [
        ("words.txt", "words.txt:2: the tokenizer splits 'covid-19' into"),
        ("/dev/zero", "/dev/zero is a device or a pipe; expected a text file."),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    run_tool, released_folder, tmp_path, path, message
):
    (tmp_path / "words.txt").write_text("good\ncovid-19\n")
    done = run_tool(
        "convert_checkpoint",
        f"--source={released_folder}",
        f"--target={tmp_path / 'new'}",
        "--target_format=bert",
        f"--add_words={tmp_path / path}",
        exit_code=1,
    )
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (tmp_path / "new").exists()
