"""convert_checkpoint as its user sees it: flags, report, mistakes."""

import json

import pytest

from bert_tf.checkpoints import formats


@pytest.fixture
def released(copy_release, tmp_path):
    """A folder as the released zips have it."""
    return copy_release(tmp_path / "uncased_L-2_H-16_A-2")


@pytest.fixture
def convert(run_tool, released, tmp_path):
    """Runs the tool on a released folder; keyword arguments are its flags."""
    target = tmp_path / "new"
    flags = {"source": released, "target": target, "target_format": "bert"}
    return lambda **changes: run_tool("convert_checkpoint", **flags | changes)


def test_the_report_says_what_went_where_and_that_nothing_changed(convert, tmp_path):
    done = convert()
    lines = done.stdout.splitlines()
    assert lines[0].endswith("uncased_L-2_H-16_A-2/bert_model.ckpt (bert)")
    assert lines[1] == f"target       {tmp_path / 'new'} (bert)"
    for line in (
        "model        pretraining, 2 layers of 16, gelu, 288 word pieces, lowercased",
        "parameters   10,514",
        "mapped       46 weights, the same bits when read back",
        "left out     1 tensors of the optimizer",
        "  sequence_output                  0.0e+00",
    ):
        assert line in lines
    assert lines[-1].split() == ["next_sentence_logits", "0.0e+00"]


@pytest.mark.slow
def test_the_head_the_vocabulary_the_size_and_the_casing_follow_their_flags(
    convert, released, tmp_path
):
    settings = json.loads((released / "bert_config.json").read_text())
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(settings | {"hidden_dropout_prob": 0.3}))
    tokens = (released / "vocab.txt").read_text().splitlines()
    vocab_file = tmp_path / "other.txt"
    vocab_file.write_text("\n".join([tokens[0], "newpiece", *tokens[2:]]) + "\n")
    convert(
        head="masked_lm",
        bert_config_file=changed,
        vocab_file=vocab_file,
        source=released,
    )
    source = formats.open_source(tmp_path / "new")
    assert source.head.kind == "masked_lm"
    assert source.config.hidden_dropout_prob == 0.3
    assert source.vocabulary.tokens[1] == "newpiece"
    assert source.do_lower_case is True

    mine = released.rename(tmp_path / "mine")  # A name that does not state the casing.
    convert(source=mine, do_lower_case="false", target=tmp_path / "other")
    assert formats.open_source(tmp_path / "other").do_lower_case is False


@pytest.mark.parametrize(
    "flags, message",
    [
        ({"source": "nowhere"}, "No such checkpoint: nowhere"),
        ({"source": "/"}, "/ is a folder of an unknown format; expected one of"),
        ({"do_lower_case": "false"}, "pass --do_lower_case=True"),
        ({"head": "question_answering"}, "cls/squad/output_weights is missing"),
        ({"head": "classification"}, "no such head (output_weights is missing)"),
        ({"target": "/"}, "/ already exists; choose another --target"),
        ({"target_format": "keras"}, "new: expected a name that ends with .keras"),
    ],
)
def test_what_does_not_fit_ends_in_one_line_and_exit_code_1(
    convert, tmp_path, flags, message
):
    done = convert(**flags, exit_code=1)
    assert message in done.refusal
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "flags, message",
    [
        ({"target_format": "onnx"}, "--target_format: expected one of bert, hugging_"),
        ({"drop_text_encoding": "true"}, "can store everything of"),
    ],
)
def test_wrong_flags_end_in_one_line_and_exit_code_2(convert, flags, message):
    done = convert(**flags, exit_code=2)
    assert message in done.refusal


@pytest.mark.slow
def test_a_head_that_the_target_cannot_store_is_dropped_only_on_request(
    convert, released, tmp_path
):
    pytest.importorskip("keras_hub")
    flags = {"target_format": "keras_hub"}
    done = convert(**flags, exit_code=1)
    assert "seq_relationship" in done.refusal
    assert "pass --head=encoder" in done.refusal
    done = convert(**flags, head="encoder")
    assert "dropped      7 weights" in done.stdout


@pytest.mark.slow
def test_another_activation_is_converted_only_on_request(convert, released, tmp_path):
    pytest.importorskip("keras_hub")
    config = json.loads((released / "bert_config.json").read_text())
    (tmp_path / "erf.json").write_text(json.dumps(config | {"hidden_act": "gelu_erf"}))
    flags = {
        "target_format": "keras_hub",
        "head": "encoder",
        "bert_config_file": tmp_path / "erf.json",
    }
    done = convert(**flags, exit_code=1)
    assert "pass --allow_activation_change" in done.refusal
    done = convert(**flags, allow_activation_change=True)
    assert "the target computes something else" in done.stdout
    assert "computed with the target's activation" in done.stdout
