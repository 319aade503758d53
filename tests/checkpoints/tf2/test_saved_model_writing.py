"""SavedModels of ours: what a plain TensorFlow process sees, and what we read back."""

import dataclasses
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import source as source_module
from bert_tf.checkpoints import text_encoding
from bert_tf.checkpoints.conversion import probe
from bert_tf.checkpoints.tf2 import saved_model
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module

CONFIG = config_module.BertConfig(
    vocab_size=7,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=12,
    hidden_act="gelu_erf",
    hidden_dropout_prob=0.3,
    attention_probs_dropout_prob=0.2,
    max_position_embeddings=16,
    layer_norm_epsilon=1e-5,
)
TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat")


def _source(kind, *, without=(), **changes):
    """Returns a source of random weights with a head, and its model."""
    has_labels = kind in ("classification", "token_classification")
    head = checkpoint_heads.Head(
        kind=kind,
        num_labels=3 if has_labels else None,
        labels=("a", "b", "ü") if has_labels else None,
    )
    model = checkpoint_heads.create_model(CONFIG, head)
    variables = checkpoint_names.checkpoint_variables(model)
    random = np.random.default_rng(3)
    for name, variable in variables.items():
        mean = float(name.endswith("gamma"))
        variable.assign(random.normal(mean, 0.2, variable.shape))
    arrays = {
        name: variable.numpy()
        for name, variable in variables.items()
        if not name.startswith(without or "?")
    }
    source = source_module.Source(
        path="a source",
        format="bert",
        shapes={name: array.shape for name, array in arrays.items()},
        read_each=lambda wanted: ((name, arrays[name]) for name in wanted),
        head=head,
        config=CONFIG,
        text=text_encoding.TextEncoding(
            vocabulary=vocabulary_module.Vocabulary(TOKENS), do_lower_case=False
        ),
    )
    return dataclasses.replace(source, **changes), model


@pytest.mark.parametrize("kind", checkpoint_heads.KINDS)
def test_every_model_is_read_back_as_it_was_and_computes_the_same(tmp_path, kind):
    source, model = _source(kind)
    saved_model.write(source, str(tmp_path))
    again = saved_model.open_source(tmp_path)
    assert again.config == source.config
    assert again.head == source.head
    assert again.vocabulary.tokens == TOKENS
    assert again.do_lower_case is False
    assert (again.notes, again.unmapped, again.own_names) == ((), (), {})
    assert dict(again.shapes) == dict(source.shapes)
    pairs = zip(
        source.read_each(source.shapes), again.read_each(source.shapes), strict=True
    )
    for (name, array), (_, array_again) in pairs:
        np.testing.assert_array_equal(array_again, array, err_msg=name)
    batch = probe.features(CONFIG, kind)
    served = saved_model.library_outputs(str(tmp_path), batch)
    computed = model(batch)
    encoder = set() if kind == "multiple_choice" else {"sequence_output"}
    assert encoder <= set(served)
    for name in set(served) & set(computed):
        np.testing.assert_allclose(served[name], computed[name], rtol=0, atol=1e-5)
    logits = {name for name in computed if name.endswith(("logits", "probabilities"))}
    assert logits <= set(served)


# Run where neither Keras nor this package can be imported.
_PLAIN = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
for name in ("keras", "bert_tf"):
    sys.modules[name] = None
model = tf.saved_model.load(sys.argv[1])
inputs = {
    "input_word_ids": tf.constant([[2, 5, 6, 3], [2, 5, 3, 0]]),
    "input_mask": tf.constant([[1, 1, 1, 1], [1, 1, 1, 0]]),
    "input_type_ids": tf.constant([[0, 0, 1, 1], [0, 0, 0, 0]]),
}
outputs = model(inputs)
words = model.mlm(inputs | {"masked_lm_positions": tf.constant([[1], [2]])})
with tf.GradientTape() as tape:
    trained = model(inputs, training=True)
    loss = tf.reduce_sum(trained["pooled_output"] ** 2)
gradients = tape.gradient(loss, model.trainable_variables)
again = model(inputs, training=True)
with open(model.vocab_file.asset_path.numpy()) as file:
    vocabulary = file.read().split()
print(json.dumps({
    "outputs": {name: tf.nest.map_structure(lambda x: x.numpy().tolist(), value)
                for name, value in outputs.items()},
    "mlm": sorted(words), "mlm_logits": words["mlm_logits"].numpy().tolist(),
    "signatures": list(model.signatures),
    "variables": [variable.name for variable in model.variables],
    "trainable": len(model.trainable_variables),
    "no_gradient": [variable.name for variable, gradient
                    in zip(model.trainable_variables, gradients) if gradient is None],
    "losses": list(model.regularization_losses),
    "drops": bool(tf.reduce_any(trained["pooled_output"] != again["pooled_output"])),
    "vocabulary": vocabulary, "do_lower_case": bool(model.do_lower_case),
}))
"""


def test_a_plain_process_sees_the_interface_of_series_4(tmp_path):
    source, model = _source("pretraining")
    saved_model.write(source, str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_PLAIN), tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    features = {
        "input_ids": np.array([[2, 5, 6, 3], [2, 5, 3, 0]]),
        "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]]),
        "segment_ids": np.array([[0, 0, 1, 1], [0, 0, 0, 0]]),
        "masked_lm_positions": np.array([[1], [2]]),
    }
    expected = model.bert(features)
    hub = {"sequence_output", "pooled_output", "encoder_outputs", "default"}
    assert set(seen["outputs"]) == hub
    for theirs, ours in [
        ("sequence_output", expected["sequence_output"]),
        ("pooled_output", expected["pooled_output"]),
        ("default", expected["pooled_output"]),
        ("encoder_outputs", np.stack(expected["all_encoder_layers"])),
    ]:
        np.testing.assert_allclose(seen["outputs"][theirs], ours, rtol=0, atol=1e-5)
    assert set(seen["mlm"]) == {*hub, "mlm_logits"}
    logits = model(features)["masked_lm_logits"]
    np.testing.assert_allclose(seen["mlm_logits"], logits, rtol=0, atol=1e-5)
    assert seen["signatures"] == ["ids"]
    assert {name.removesuffix(":0") for name in seen["variables"]} == {*source.shapes}
    assert seen["trainable"] == len(source.shapes)
    # The pooled output does not pass through the heads, but through all other layers.
    assert all(name.startswith("cls/") for name in seen["no_gradient"])
    assert seen["losses"] == []
    assert seen["drops"]
    assert tuple(seen["vocabulary"]) == TOKENS
    assert seen["do_lower_case"] is False


def test_without_a_pooler_there_is_no_pooled_output(tmp_path):
    source, model = _source("token_classification", without="bert/pooler/")
    saved_model.write(source, str(tmp_path))
    batch = probe.features(CONFIG)
    loaded = tf.saved_model.load(str(tmp_path))
    inputs = {
        "input_word_ids": batch["input_ids"],
        "input_mask": batch["input_mask"],
        "input_type_ids": batch["segment_ids"],
    }
    outputs = loaded({name: tf.constant(array) for name, array in inputs.items()})
    assert set(outputs) == {"sequence_output", "encoder_outputs"}
    served = saved_model.library_outputs(str(tmp_path), batch)
    assert "pooled_output" not in served
    np.testing.assert_allclose(
        served["logits"], model(batch)["logits"], rtol=0, atol=1e-5
    )
    assert not any(
        "pooler" in name for name in saved_model.open_source(tmp_path).shapes
    )


def test_weights_that_no_model_has_are_kept(tmp_path):
    source, _ = _source("encoder")
    extra = np.arange(3, dtype=np.float32)
    read_each = source.read_each
    source = dataclasses.replace(
        source,
        shapes={**source.shapes, "cls/squad/output_bias": (3,)},
        read_each=lambda wanted: (
            (name, extra) if name.startswith("cls/") else next(read_each([name]))
            for name in wanted
        ),
    )
    assert set(saved_model.placement(source).places) == set(source.shapes)
    saved_model.write(source, str(tmp_path))
    again = saved_model.open_source(tmp_path)
    ((_, kept),) = again.read_each(["cls/squad/output_bias"])
    np.testing.assert_array_equal(kept, extra)


def test_what_is_not_known_is_not_written(tmp_path):
    source, _ = _source("encoder", text=text_encoding.TextEncoding())
    saved_model.write(source, str(tmp_path))
    again = saved_model.open_source(tmp_path)
    assert again.vocabulary is None
    assert again.do_lower_case is None


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"config": None}, "size of the model in a source is unknown; put"),
        ({"without": "bert/encoder/layer_0/out"}, "a source lacks 4 of the model's"),
    ],
)
def test_a_source_that_is_not_whole_is_refused(tmp_path, changes, message):
    source, _ = _source("encoder", **changes)
    with pytest.raises(ValueError, match=message):
        saved_model.write(source, str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_description_of_the_head_is_reported(tmp_path):
    source, _ = _source("classification")
    saved_model.write(source, str(tmp_path))
    (tmp_path / "assets" / "head.json").write_text('{"kind": "dance"}')
    with pytest.raises(ValueError, match=r"head\.json does not describe a head"):
        saved_model.open_source(tmp_path)
