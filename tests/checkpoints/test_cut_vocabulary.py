"""A vocabulary cut to a corpus: its texts give the same pieces and outputs."""

import dataclasses

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import cut_vocabulary
from bert_tf.checkpoints import formats
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import workflow as conversion_workflow

# NumPy 2 about TensorFlow's variables, while Keras writes its own files.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"
)

CORPUS = ["The lighthouse keeper.", "", "Keeping [MASK] lighthouses 2"]
WORD_TABLE = "bert/embeddings/word_embeddings"


@pytest.fixture
def convert(released_folder, tmp_path):
    """Converts the released folder: convert(target_format, flags)."""

    def convert(target_format="bert", *, corpus=CORPUS, **flags):
        (tmp_path / "corpus_a.txt").write_text(corpus[0])
        (tmp_path / "corpus_b.txt").write_text("\n".join(corpus[1:]))
        ending = ".keras" if target_format == "keras" else ""
        target = tmp_path / f"cut_{target_format}{ending}"
        options = conversion_options.ConvertCheckpointOptions(
            source=str(released_folder),
            target=str(target),
            target_format=target_format,
            cut_vocabulary=str(tmp_path / "corpus_*.txt"),
            **flags,
        )
        return target, conversion_workflow.run(options)

    return convert


@pytest.mark.parametrize("target_format", ["bert", "hugging_face", "keras"])
def test_texts_of_the_corpus_give_the_same_outputs_in_every_format(
    convert, released_folder, target_format
):
    target, report = convert(target_format)
    before, after = bert_tf.load_model(released_folder), bert_tf.load_model(target)
    vocabulary = formats.open_source(target).vocabulary
    assert after.config.vocab_size == len(vocabulary) < 288
    assert f"{len(vocabulary)} of 288 word pieces remain" in report
    old = bert_tf.FullTokenizer(released_folder / "vocab.txt")
    new = bert_tf.FullTokenizer(vocabulary)
    assert list(map(new.tokenize, CORPUS)) == list(map(old.tokenize, CORPUS))
    features = [bert_tf.pack(one, CORPUS, max_seq_length=16) for one in (old, new)]
    positions = {"masked_lm_positions": np.array([[1, 2]] * len(CORPUS))}
    outputs, outputs_after = (
        before(features[0] | positions),
        after(features[1] | positions),
    )
    np.testing.assert_array_equal(
        outputs["sequence_output"], outputs_after["sequence_output"]
    )
    # The biases of the masked words are cut as well.
    ids = old.convert_tokens_to_ids(vocabulary)
    # Products of other widths may be summed in another order.
    np.testing.assert_allclose(
        np.asarray(outputs["masked_lm_logits"])[..., ids],
        outputs_after["masked_lm_logits"],
        rtol=1e-5,
        atol=1e-5,
    )


def test_single_characters_and_special_pieces_remain(convert):
    target, _ = convert()
    kept = formats.open_source(target).vocabulary
    assert {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "z", "##z"} <= set(kept)
    assert kept.tokens[0] == "[PAD]"
    tokenizer = bert_tf.FullTokenizer(kept)
    assert tokenizer.tokenize("keeping") == ["keep", "##ing"]
    # A word that the corpus lacks is spelled, and not unknown.
    assert tokenizer.tokenize("bees") == ["b", "##e", "##e", "##s"]


@pytest.mark.parametrize("name", ["train.json", "train.jsonl", "train.jsonl.gz"])
def test_json_is_refused(released_folder, tmp_path, name):
    (tmp_path / name).write_text('{"text": "caf\\u00e9"}')
    options = conversion_options.ConvertCheckpointOptions(
        source=str(released_folder),
        target=str(tmp_path / "cut"),
        target_format="bert",
        cut_vocabulary=str(tmp_path / name),
    )
    with pytest.raises(ValueError, match=f"{name} is JSON; expected text files"):
        conversion_workflow.run(options)


def test_unused_pieces_go_unless_the_tokenizer_never_splits_them():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused0]", "[unused1]", "[Q]"]
    tokenizer = bert_tf.FullTokenizer(
        bert_tf.Vocabulary([*tokens, "the", "old"]), never_split=("[unused1]",)
    )
    found = cut_vocabulary.pieces_in(["The end"], tokenizer)
    assert found == {"the", "[UNK]"}
    kept = cut_vocabulary.kept_ids(tokenizer, found)
    assert [tokenizer.inv_vocab[number] for number in kept] == [
        *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused1]", "[Q]", "the")
    ]


def test_prompts_of_the_checkpoint_are_split_as_before(released_folder):
    source = formats.open_source(released_folder)
    text = dataclasses.replace(source.text, prompts={"query": "Ninety: "})
    source = dataclasses.replace(source, text=text)
    cut = cut_vocabulary.cut_source(source, CORPUS, corpus="corpus.txt")
    whole = bert_tf.FullTokenizer(source.vocabulary).tokenize("Ninety: ")
    assert bert_tf.FullTokenizer(cut.vocabulary).tokenize("Ninety: ") == whole


def test_words_can_be_added_after_the_cut(convert, tmp_path):
    (tmp_path / "words.txt").write_text("beehive\n")
    target, report = convert(add_words=str(tmp_path / "words.txt"))
    vocabulary = formats.open_source(target).vocabulary
    assert vocabulary.tokens[-1] == "beehive"
    assert f"with the ids {len(vocabulary) - 1} to {len(vocabulary) - 1}" in report


def test_a_corpus_without_words_is_refused(convert, tmp_path):
    with pytest.raises(ValueError, match="there are no words; expected texts like"):
        convert(corpus=["", "\n"])
    assert not (tmp_path / "cut_bert").exists()
