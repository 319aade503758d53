"""Folders with tf_model.h5, which the TensorFlow classes of transformers 4 wrote."""

import pathlib
import shutil

import h5py
import numpy as np
import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import loading

FOREIGN = pathlib.Path(__file__).resolve().parents[1] / "foreign" / "hugging_face_h5"
# Kind of head -> outputs of transformers by our names.
OUTPUTS = {
    "encoder": {
        "sequence_output": "last_hidden_state",
        "pooled_output": "pooler_output",
    },
    "pretraining": {
        "masked_lm_logits": "prediction_logits",
        "next_sentence_logits": "seq_relationship_logits",
    },
    "masked_lm": {"masked_lm_logits": "logits"},
    "classification": {"logits": "logits"},
    "question_answering": {"start_logits": "start_logits", "end_logits": "end_logits"},
    "token_classification": {"logits": "logits"},
    "multiple_choice": {"logits": "logits"},
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_a_folder_computes_what_it_did_in_its_own_library(kind):
    recorded = np.load(FOREIGN / kind / "expected.npz")
    # Under Hugging Face's own names.
    batch = {
        name.removeprefix("input/"): recorded[name]
        for name in recorded.files
        if name.startswith("input/")
    }
    if kind in ("masked_lm", "pretraining"):
        rows, length = batch["input_ids"].shape
        batch["masked_lm_positions"] = np.tile(np.arange(length), (rows, 1))
    source = formats.open_source(FOREIGN / kind)
    assert (source.format, source.head.kind) == ("hugging_face", kind)
    assert source.unmapped == ()
    outputs = loading.load_model(FOREIGN / kind)(batch)
    for ours, theirs in OUTPUTS[kind].items():
        np.testing.assert_allclose(
            outputs[ours], recorded[theirs], atol=1e-5, rtol=1e-5
        )


def test_scopes_without_the_model_s_name_and_half_precision_are_read(tmp_path):
    folder = shutil.copytree(FOREIGN / "question_answering", tmp_path / "folder")
    expected = loading.load_model(folder)
    with h5py.File(folder / "tf_model.h5", "r+") as file:
        for layer in ("bert", "qa_outputs"):  # As if saved before the first call.
            file.move(
                f"{layer}/tf_bert_for_question_answering/{layer}", f"{layer}/{layer}"
            )
        name = "qa_outputs/qa_outputs/bias:0"
        bias = file[name][()].astype("float16")
        del file[name]
        file[name] = bias
    source = formats.open_source(folder)
    assert any("stored as F16" in note for note in source.notes)
    loaded = loading.load_model(folder)
    for weight, other in zip(loaded.weights, expected.weights, strict=True):
        if "pooler" not in weight.path:  # The class has none.
            np.testing.assert_allclose(weight, other, rtol=1e-3)


def truncated(path):
    path.write_bytes(path.read_bytes()[:3000])


def without_a_weight(path):
    with h5py.File(path, "r+") as file:
        del file["bert/tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0"]


def without_any(path):
    h5py.File(path, "w").close()


@pytest.mark.parametrize(
    "damage, message",
    [
        (truncated, r"tf_model.h5 cannot be read: it is truncated or damaged \(3000 b"),
        (without_a_weight, "are missing, such as bert.encoder.layer.0.output.dense.we"),
        (without_any, "tf_model.h5 contains no weights; copy or download it again"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, damage, message):
    folder = shutil.copytree(FOREIGN / "encoder", tmp_path / "folder")
    damage(folder / "tf_model.h5")
    with pytest.raises(ValueError, match=message) as error:
        formats.open_source(folder)
    assert "\n" not in str(error.value)


def test_safetensors_with_names_of_tensorflow_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"saved by a TensorFlow class .* as tf_model"):
        formats.open_source(FOREIGN / "safe_serialization")
