"""Models of other libraries compute here what they did there.

The scripts in foreign/ wrote the models, and what their libraries compute.
"""

import pathlib
import zipfile

import numpy as np
import pytest

from bert_tf.checkpoints import formats
from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import loading

FOREIGN = pathlib.Path(__file__).parent / "foreign"
BATCH = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
ENCODED = "sequence_output pooled_output"
# Names of outputs elsewhere -> ours.
NAMES = {
    "prediction_logits": "masked_lm_logits",
    "mlm_logits": "masked_lm_logits",
    "seq_relationship_logits": "next_sentence_logits",
    "last_hidden_state": "sequence_output",
    "pooler_output": "pooled_output",
}


@pytest.mark.parametrize(
    "name, kind, outputs",
    [
        ("model_garden/encoder", "encoder", ENCODED),
        # By the converter: no next-sentence head.
        ("model_garden/pretrainer", "masked_lm", f"{ENCODED} mlm_logits"),
        # Its next-sentence head has its own pooler.
        (
            "model_garden/trained",
            "pretraining",
            "sequence_output mlm_logits next_sentence_logits",
        ),
        ("saved_model/encoder", "encoder", ENCODED),
        ("saved_model/with_mlm", "masked_lm", f"{ENCODED} mlm_logits"),
        ("saved_model/erf", "classification", "logits"),
        ("hub_module", "encoder", ENCODED),  # Series 1.
        ("keras_hub/encoder", "encoder", ENCODED),
        ("keras_hub/classification", "classification", "logits"),
        # Only the encoder of a masked-word model is read.
        ("keras_hub/masked_lm", "encoder", ENCODED),
    ],
)
def test_a_model_computes_what_it_did_in_its_own_library(tmp_path, name, kind, outputs):
    recorded = np.load(FOREIGN / name / "expected.npz")
    path = FOREIGN / name
    if (path / "model.zip").exists():
        with zipfile.ZipFile(path / "model.zip") as archive:
            archive.extractall(tmp_path)
        path = tmp_path
    source = formats.open_source(path)
    expected_format = name.split("/")[0].replace("hub_module", "saved_model")
    assert (source.format, source.head.kind) == (expected_format, kind)
    if expected_format == "saved_model":
        assert source.unmapped == ()
    model = loading.model_of(source.with_head(kind)[0])
    computed = model({key: recorded[key] for key in BATCH if key in recorded})
    for output in outputs.split():
        np.testing.assert_allclose(
            computed[NAMES.get(output, output)], recorded[output], rtol=0, atol=1e-5
        )


@pytest.mark.parametrize(
    "name, kind",
    [
        *((f"hugging_face/{kind}", kind) for kind in checkpoint_heads.KINDS),
        ("hugging_face/sharded", "pretraining"),
        ("hugging_face/bfloat16", "classification"),
        ("hugging_face/float16", "encoder"),
        ("hugging_face/gamma_beta", "pretraining"),  # The library of 2018.
        ("hugging_face/data_parallel", "classification"),  # module.bert. ...
        ("hugging_face/compiled", "encoder"),  # module._orig_mod. ...
        # tf_model.h5 of transformers 4.
        *((f"hugging_face_h5/{kind}", kind) for kind in checkpoint_heads.KINDS),
    ],
)
def test_a_folder_computes_what_it_did_in_transformers(name, kind):
    recorded = dict(np.load(FOREIGN / name / "expected.npz"))
    # Under Hugging Face's own names.
    keys = [key for key in recorded if key.startswith("input/")]
    batch = {key.removeprefix("input/"): recorded.pop(key) for key in keys}
    flat = {key: ids.reshape(-1, ids.shape[-1]) for key, ids in batch.items()}
    if kind in ("masked_lm", "pretraining"):
        rows, length = batch["input_ids"].shape
        batch["masked_lm_positions"] = np.tile(np.arange(length), (rows, 1))
    source = formats.open_source(FOREIGN / name)
    assert (source.format, source.head.kind) == ("hugging_face", kind)
    assert source.unmapped == ()
    model = loading.model_of(source)
    encoded = getattr(model, "bert", model)(flat)
    states = [encoded["embedding_output"], *encoded["all_encoder_layers"]]
    computed = {
        **encoded,
        "hidden_states": states,
        "layers": states[1:],
        **model(batch),
    }
    for key, expected in recorded.items():
        ours = NAMES.get(key, key)
        if (kind, key) == ("masked_lm", "logits"):
            ours = "masked_lm_logits"
        np.testing.assert_allclose(computed[ours], expected, atol=1e-5, rtol=1e-5)
