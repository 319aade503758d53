"""fill_mask: the words behind [MASK], and where it finds what it needs."""

import json
import shutil

import numpy as np
import pytest

from bert_tf.checkpoints import loading
from bert_tf.modeling import config
from bert_tf.pretraining import model as pretraining_model
from bert_tf.pretraining import predictions
from bert_tf.pretraining import run_options
from bert_tf.tokenization import full

TEXT = "the [MASK] of [MASK]"


@pytest.fixture
def fill_options(golden):
    """Returns options for the recorded model; keywords replace or add."""

    def create(**values):
        defaults = {
            "init_checkpoint": str(golden / "model" / "bert_model.ckpt"),
            "bert_config_file": str(golden / "model" / "bert_config.json"),
            "vocab_file": str(golden / "vocab.txt"),
            "text": TEXT,
        }
        return run_options.FillMaskOptions(**defaults | values)

    return create


@pytest.fixture
def released(golden, tmp_path):
    """Folder with checkpoint, configuration and vocabulary beside each other."""
    folder = tmp_path / "released"
    folder.mkdir()
    for path in (*(golden / "model").glob("bert_*"), golden / "vocab.txt"):
        shutil.copy(path, folder)
    return folder


def test_the_probabilities_are_those_of_the_model(fill_options, golden):
    folder = golden / "model"
    model = pretraining_model.BertPretrainer(
        config.BertConfig.from_json_file(folder / "bert_config.json")
    )
    model.build()
    loading.load_checkpoint(model, str(folder / "bert_model.ckpt"))
    vocabulary = full.FullTokenizer(golden / "vocab.txt").vocabulary
    words = ["[CLS]", "the", "[MASK]", "of", "[MASK]", "[SEP]"]
    outputs = model(
        {
            "input_ids": np.array([[vocabulary[word] for word in words]], "int32"),
            "masked_lm_positions": np.array([[2, 4]], "int32"),
        }
    )
    logits = np.asarray(outputs["masked_lm_logits"][0], "float64")
    expected = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)

    size = len(vocabulary)
    fillings = predictions.load(fill_options()).fill(TEXT, top_k=size)
    assert len(fillings) == 2
    for row, found in zip(expected, fillings, strict=True):
        by_token = {one.token: one.probability for one in found}
        by_id = [by_token[token] for token in vocabulary.tokens]
        np.testing.assert_allclose(by_id, row, rtol=1e-5)
        assert list(by_token.values()) == sorted(by_token.values(), reverse=True)
        assert sum(by_token.values()) == pytest.approx(1.0)


def test_the_report_has_a_line_a_mask_with_top_k_words(fill_options):
    report = predictions.fill_mask(fill_options(top_k=3), [TEXT, "[MASK]"])
    lines = report.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [TEXT, "[MASK]"]
    assert [len(line.split()) for line in lines if line.startswith("  ")] == [6] * 3


def test_the_text_of_the_flag_or_of_standard_input_is_filled(
    run_tool, released, monkeypatch
):
    monkeypatch.setattr("sys.stdin", iter(["a [MASK]\n", "\n", "[MASK] b\n"]))
    for text, shown in (
        ("the [MASK]", ["the [MASK]"]),
        ("-", ["a [MASK]", "[MASK] b"]),
    ):
        flags = [f"--init_checkpoint={released / 'bert_model.ckpt'}", f"--text={text}"]
        done = run_tool("fill_mask", *flags)
        assert done.exit_code == 0, done.stderr
        assert done.stdout.splitlines()[::2] == shown


@pytest.mark.parametrize(
    "text, message",
    [
        ("no mask here", r"at least one \[MASK\] in the text, got 'no mask here'"),
        ("[mask]", r"at least one \[MASK\]"),  # Lower case is a word like others.
        ("[MASK] " * 70, "max_position_embeddings"),
    ],
)
def test_a_text_that_cannot_be_filled_is_refused(fill_options, text, message):
    with pytest.raises(ValueError, match=message):
        predictions.load(fill_options()).fill(text)


def test_what_is_beside_the_checkpoint_need_not_be_named(fill_options, released):
    values = {"init_checkpoint": str(released / "bert_model.ckpt")}
    nothing_named = {"bert_config_file": None, "vocab_file": None}
    named = predictions.load(fill_options()).fill(TEXT)
    assert predictions.load(fill_options(**values, **nothing_named)).fill(TEXT) == named


def test_a_configuration_and_a_vocabulary_that_are_named_come_first(
    fill_options, released, tmp_path
):
    values = {"init_checkpoint": str(released / "bert_model.ckpt")}
    settings = json.loads((released / "bert_config.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps(settings | {"num_attention_heads": 1}))
    tokens = (released / "vocab.txt").read_text().splitlines()
    (tmp_path / "v.txt").write_text("\n".join([*tokens[:-1], "другое"]) + "\n")
    filler = predictions.load(
        fill_options(
            **values,
            bert_config_file=str(tmp_path / "c.json"),
            vocab_file=str(tmp_path / "v.txt"),
        )
    )
    assert filler.model.config.num_attention_heads == 1
    assert filler.tokenizer.vocabulary.tokens[-1] == "другое"


@pytest.mark.parametrize(
    "given, recorded, expected",
    [
        (None, {}, True),
        (None, {"do_lower_case": None}, True),  # Of examples of the 2018 code.
        (None, {"do_lower_case": False}, False),
        (False, {"do_lower_case": False}, False),
        (False, {}, False),
    ],
    ids=["default", "unknown", "as the run", "both", "flag"],
)
def test_the_casing_is_the_flags_or_that_of_the_run(
    fill_options, released, given, recorded, expected
):
    (released / "task.json").write_text(json.dumps({"task": "pretraining"} | recorded))
    checkpoint = str(released / "bert_model.ckpt")
    filler = predictions.load(
        fill_options(init_checkpoint=checkpoint, do_lower_case=given)
    )
    assert filler.tokenizer.tokenize("THE") == (["the"] if expected else ["[UNK]"])


def test_a_casing_that_is_not_the_checkpoints_is_refused(fill_options, released):
    (released / "task.json").write_text('{"do_lower_case": false}')
    checkpoint = str(released / "bert_model.ckpt")
    with pytest.raises(ValueError, match=r"is of cased text; give --do_lower_case=F"):
        predictions.load(fill_options(init_checkpoint=checkpoint, do_lower_case=True))


def test_a_checkpoint_that_is_not_there_is_named(fill_options):
    with pytest.raises((ValueError, OSError), match=r"/no/bert_model\.ckpt"):
        predictions.load(fill_options(init_checkpoint="/no/bert_model.ckpt"))
