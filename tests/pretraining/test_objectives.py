"""The paper's ablations as a user runs them: data, pretraining, what follows."""

import dataclasses
import json
import types

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import loading
from bert_tf.modeling import config as config_module
from bert_tf.pretraining import model_setup
from tests import ring
from tests import runs

SIZE = "L-1_H-16_A-2"


@pytest.fixture(scope="module")
def records(create_data, sample_data):
    """Examples without sentence pairs."""
    # A vocabulary of 288 pieces leaves most words unknown, which does not matter here.
    return create_data(
        input_file=sample_data / "corpus_heldout.txt",
        max_seq_length=32,
        max_predictions_per_seq=5,
        dupe_factor=1,
        next_sentence=False,
        max_unknown_share=1,
    )


@pytest.fixture(scope="module")
def pretrain(records, run_tool, golden):
    """Runs run_pretraining on those examples, into a folder."""

    given = {
        "input_file": records,
        "bert_config_file": golden / "model" / "bert_config.json",
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "num_train_steps": 4,
        "num_warmup_steps": 1,
        "do_train": True,
    }
    return lambda **flags: run_tool("run_pretraining", **given | flags)


@pytest.fixture(scope="module")
def left_to_right_run(tmp_path_factory, pretrain):
    run = tmp_path_factory.mktemp("runs") / "left_to_right"
    pretrain(output_dir=run, objective="left_to_right", do_eval=True)
    return run


@pytest.fixture(scope="module")
def words_only_run(tmp_path_factory, pretrain):
    run = tmp_path_factory.mktemp("runs") / "words_only"
    pretrain(output_dir=run, do_eval=True)
    return run


def test_left_to_right_trains_and_scores_the_next_piece(left_to_right_run):
    lines = runs.metrics(left_to_right_run)
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert "masked_lm_loss" not in lines[0]
    # At first, the 288 pieces are nearly equally likely.
    assert lines[0]["next_piece_loss"] == pytest.approx(np.log(288), rel=0.02)
    assert lines[0]["next_piece_loss"] == lines[0]["loss"]
    results = runs.scores(left_to_right_run)
    assert list(results) == [
        "global_step",
        "loss",
        "next_piece_accuracy",
        "next_piece_loss",
    ]


def test_a_run_is_evaluated_as_it_was_trained_without_saying_how(
    left_to_right_run, pretrain
):
    before = (left_to_right_run / "eval_results.txt").read_text()
    (left_to_right_run / "eval_results.txt").unlink()
    applied = {"do_train": None, "do_eval": True, "bert_config_file": None}
    pretrain(output_dir=left_to_right_run, **applied)
    assert (left_to_right_run / "eval_results.txt").read_text() == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["left_to_right", "words_only"])
def test_fine_tuning_starts_from_it_and_keeps_its_attention(
    kind, request, tmp_path, sample_data, run_tool
):
    run = request.getfixturevalue(f"{kind}_run")
    task = json.loads((run / "task.json").read_text())
    objective = "left_to_right" if kind == "left_to_right" else "masked_lm"
    assert (task["objective"], task["next_sentence"]) == (objective, False)
    output_dir = tmp_path / "topics"
    done = run_tool(
        "run_classifier",
        f"--init_checkpoint={run}",
        f"--train_file={sample_data / 'topics_train.tsv'}",
        f"--eval_file={sample_data / 'topics_dev.tsv'}",
        "--max_seq_length=32",
        "--num_train_epochs=0.2",
        f"--output_dir={output_dir}",
        "--do_train",
        "--do_eval",
    )
    assert "in it, but not in the model: cls/predictions (5)" in done.stderr
    read = config_module.BertConfig.from_json_file(output_dir / "bert_config.json")
    assert read.is_causal == (kind == "left_to_right")
    assert "eval_accuracy" in runs.scores(output_dir)
    text = ["the first words of a text"]
    [answer] = bert_tf.load(str(output_dir)).predict(text)
    model = loading.load_model(str(output_dir))
    assert model.config.is_causal == (kind == "left_to_right")
    run_tool(
        "export_saved_model",
        f"--output_dir={output_dir}",
        f"--export_dir={tmp_path / 'export'}",
    )
    done = run_tool(
        "query_saved_model", f"--export_dir={tmp_path / 'export'}", f"--text={text[0]}"
    )
    exported = json.loads(done.stdout)
    for name, probability in answer["probabilities"].items():
        assert exported["probabilities"][name] == pytest.approx(probability, abs=1e-5)


@pytest.mark.parametrize(
    "target, exit_code, said",
    [
        ring.slow("bert", 0, "the 2018 code ignores causal attention"),
        ring.slow("keras", 0, ""),
        ("hugging_face", 1, "causal attention, which hugging_face cannot store"),
        ("keras_hub", 1, "causal attention, which keras_hub cannot store"),
    ],
)
def test_conversion_keeps_the_attention_or_refuses(
    left_to_right_run, tmp_path, run_tool, target, exit_code, said
):
    path = tmp_path / "model.keras"  # Keras's own files need that name.
    done = run_tool(
        "convert_checkpoint",
        source=left_to_right_run,
        target=path,
        target_format=target,
        exit_code=exit_code,
    )
    assert said in (done.refusal if exit_code else done.stdout)
    assert path.exists() != bool(exit_code)
    assert exit_code or loading.load_model(str(path)).config.is_causal


def test_filling_masks_is_refused(left_to_right_run, run_tool):
    done = run_tool(
        "fill_mask",
        f"--init_checkpoint={left_to_right_run}",
        "--text=a [MASK]",
        exit_code=1,
    )
    assert "is a left-to-right model" in done.refusal


def test_masked_words_under_causal_attention_are_refused(
    left_to_right_run, tmp_path, pretrain
):
    done = pretrain(
        output_dir=tmp_path / "run",
        init_checkpoint=left_to_right_run,
        objective="masked_lm",
        bert_config_file=None,
        exit_code=1,
    )
    assert "needs a bidirectional model" in done.refusal


@pytest.mark.slow
def test_a_bidirectional_model_may_continue_left_to_right_with_a_warning(
    words_only_run, tmp_path, pretrain
):
    done = pretrain(
        output_dir=tmp_path / "run",
        init_checkpoint=words_only_run,
        objective="left_to_right",
        bert_config_file=None,
    )
    assert "attention is bidirectional in the checkpoint's" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides, values",
    [
        (None, {}),
        (
            "hidden_dropout_prob=0,position_initializer=sinusoidal",
            {"hidden_dropout_prob": 0, "position_initializer": "sinusoidal"},
        ),
    ],
)
def test_a_named_size_trains_with_the_vocabulary_of_the_examples(
    tmp_path, pretrain, overrides, values
):
    flags = {"output_dir": tmp_path, "model_size": SIZE, "bert_config_file": None}
    pretrain(**flags, config_overrides=overrides)
    read = config_module.BertConfig.from_json_file(tmp_path / "bert_config.json")
    expected = config_module.BertConfig.of_size(SIZE, vocab_size=288)
    assert read == dataclasses.replace(expected, **values)
    # Evaluation does not depend on how the weights were initialized.
    pretrain(**flags, do_train=None, do_eval=True)


@pytest.mark.slow
def test_of_a_checkpoint_dropout_alone_is_changed(tmp_path, pretrain, words_only_run):
    flags = {"output_dir": tmp_path / "run", "bert_config_file": None}
    flags["init_checkpoint"] = words_only_run
    done = pretrain(**flags, config_overrides="num_attention_heads=1", exit_code=2)
    assert "num_attention_heads is fixed by the weights of --init_c" in done.refusal
    assert not (tmp_path / "run").exists()
    pretrain(**flags, config_overrides="hidden_dropout_prob=0.3")
    read = config_module.BertConfig.from_json_file(
        tmp_path / "run" / "bert_config.json"
    )
    assert read.hidden_dropout_prob == 0.3


@pytest.mark.parametrize(
    "change, said",
    [
        ("dropout=0", "expected NAME=VALUE with one of vocab_size, hid"),
        ("hidden_size", "got 'hidden_size'"),
        ("num_hidden_layers=2.5", "layers: expected an integer, got '2.5'"),
        ("hidden_dropout_prob=none", "dropout_prob: expected a number, got 'none'"),
        ("position_initializer=waves", "must be one of normal, sinusoidal"),
        ("hidden_dropout_prob=2", "less than 1, got 2.0"),
        ("hidden_act=relu,hidden_act=gelu", "hidden_act is given twice"),
        ("attention=causal", "attention cannot be changed here; use --objective"),
        ("vocab_size=99", "cannot be changed here; it is the size of the voc"),
    ],
)
def test_a_change_that_cannot_be_ends_in_one_line(tmp_path, pretrain, change, said):
    flags = {"output_dir": tmp_path / "run", "bert_config_file": None}
    flags |= {"model_size": "tiny", "config_overrides": change}
    done = pretrain(**flags, exit_code=2)
    assert said in done.refusal
    assert not (tmp_path / "run").exists()


def test_an_encoder_without_a_masked_word_head_starts_with_one_that_copies():
    config = config_module.BertConfig.of_size("tiny", vocab_size=9)
    weights = {"cls/predictions/transform/dense/kernel": (128, 128)}
    for shapes, copies in (({}, True), (weights, False)):
        source = types.SimpleNamespace(shapes=shapes)
        model = model_setup.create_model(config, (), "float32", source)
        transform = model.cls.predictions.transform
        transform.build()
        assert np.array_equal(transform.dense.kernel, np.eye(128)) is copies
