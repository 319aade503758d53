"""Writes small Model Garden checkpoints and TF Hub SavedModels, and what they compute.

Run in a separate environment that has tf-models-official (it needs Keras 2):

    pip install tf-models-official==2.20.0   # TensorFlow 2.20.0, tf-keras 2.20.1
    python make_tf_models.py                 # fills model_garden/ and saved_model/

Nothing of this package takes part: a random checkpoint with the release's names goes
through the library's own converter and exporter.
"""

import json
import os
import pathlib
import shutil
import tempfile

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import letters
import numpy as np
import tensorflow as tf
import tf_keras
from official.legacy.bert import configs
from official.nlp.configs import encoders
from official.nlp.modeling import layers
from official.nlp.modeling import models
from official.nlp.modeling import networks
from official.nlp.tools import export_tfhub_lib
from official.nlp.tools import tf2_bert_encoder_checkpoint_converter as converter

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = {
    "vocab_size": len(letters.TOKENS),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
}
INPUTS = {
    "input_word_ids": letters.IDS,
    "input_mask": letters.MASK,
    "input_type_ids": letters.SEGMENTS,
}
# The release's weights without the layers, and those of a layer: shapes in letters.
WEIGHTS = {
    "bert/embeddings/word_embeddings": "VH",
    "bert/embeddings/position_embeddings": "PH",
    "bert/embeddings/token_type_embeddings": "TH",
    "bert/embeddings/LayerNorm": "",
    "bert/pooler/dense": "HH",
    "cls/predictions/transform/dense": "HH",
    "cls/predictions/transform/LayerNorm": "",
    "cls/predictions/output_bias": "V",
}
LAYER = {
    **dict.fromkeys([f"attention/self/{n}" for n in ("query", "key", "value")], "HH"),
    "attention/output/dense": "HH",
    "attention/output/LayerNorm": "",
    "intermediate/dense": "HI",
    "output/dense": "IH",
    "output/LayerNorm": "",
}


def main():
    """Rewrites everything."""
    random = np.random.default_rng(20180817)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        vocab_file = folder / "vocab.txt"
        vocab_file.write_text("".join(f"{token}\n" for token in letters.TOKENS))
        released = _write_released(folder / "bert_model.ckpt", random)
        _write_converted(released)
        _write_trained(random)
        _write_exported(released, vocab_file, folder)
        _write_erf(random)
        _write_other_network()


def _write_released(prefix, random):
    """Writes a checkpoint with the release's names, for the library's converter."""
    sizes = dict(zip("VHIPT", (60, 32, 48, 24, 2), strict=True))
    parts = dict(WEIGHTS)
    for layer in range(CONFIG["num_hidden_layers"]):
        parts |= {f"bert/encoder/layer_{layer}/{n}": s for n, s in LAYER.items()}
    shapes = {}
    for name, letter_shape in parts.items():
        shape = tuple(sizes[letter] for letter in letter_shape)
        if name.endswith("LayerNorm"):
            shapes |= dict.fromkeys([f"{name}/gamma", f"{name}/beta"], (sizes["H"],))
        elif "dense" in name or "/self/" in name:
            shapes |= {f"{name}/kernel": shape, f"{name}/bias": shape[1:]}
        else:
            shapes[name] = shape
    names = sorted(shapes)
    values = [_random(random, shapes[name], "gamma" in name) for name in names]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=values,
    )
    return str(prefix)


def _write_converted(released):
    """What tf2_bert_encoder_checkpoint_converter writes."""
    config = configs.BertConfig.from_dict(CONFIG)
    for kind, root in [("encoder", "encoder"), ("pretrainer", "model")]:
        folder = _emptied(HERE / "model_garden" / kind)
        converter.convert_checkpoint(
            config, str(folder / "bert_model.ckpt"), released, root, kind
        )
    (HERE / "model_garden" / "encoder" / "bert_config.json").write_text(
        json.dumps(CONFIG, indent=2)
    )
    (HERE / "model_garden" / "encoder" / "vocab.txt").write_text(
        "".join(f"{token}\n" for token in letters.TOKENS)
    )


def _write_trained(random):
    """What the library's own pretraining leaves: an optimizer, and a next-sentence
    head with its own pooler."""
    model = models.BertPretrainerV2(
        encoder_network=_encoder_v2(),
        mlm_activation=lambda x: tf_keras.activations.gelu(x, approximate=True),
        classification_heads=[
            layers.ClassificationHead(
                inner_dim=CONFIG["hidden_size"], num_classes=2, name="next_sentence"
            )
        ],
    )
    model(_inputs(letters.POSITIONS))
    _randomize(model, random)
    optimizer = tf_keras.optimizers.legacy.Adam(1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(_inputs(letters.POSITIONS))["mlm_logits"])
    variables = model.trainable_variables
    gradients = zip(tape.gradient(loss, variables), variables, strict=True)
    optimizer.apply_gradients(pair for pair in gradients if pair[0] is not None)
    folder = _emptied(HERE / "model_garden" / "trained")
    step = tf.Variable(1, dtype=tf.int64, name="global_step")
    checkpoint = tf.train.Checkpoint(
        model=model, optimizer=optimizer, global_step=step, **model.checkpoint_items
    )
    checkpoint.save(str(folder / "ckpt"))
    outputs = model(_inputs(letters.POSITIONS))
    _save_outputs(folder, outputs, next_sentence_logits=outputs["next_sentence"])


def _write_exported(released, vocab_file, folder):
    """What export_tfhub writes as series 3 and 4: with and without the mlm model."""
    config = configs.BertConfig.from_dict(CONFIG)
    for name, with_mlm in [("encoder", False), ("with_mlm", True)]:
        prefix = str(folder / name / "bert_model.ckpt")
        kind, root = ("pretrainer", "model") if with_mlm else ("encoder", "encoder")
        converter.convert_checkpoint(config, prefix, released, root, kind)
        target = _emptied(HERE / "saved_model" / name)
        export_tfhub_lib.export_model(
            str(target / "model"),
            bert_config=config,
            model_checkpoint_path=f"{prefix}-1",
            with_mlm=with_mlm,
            vocab_file=str(vocab_file),
            do_lower_case=True,
        )
        loaded = tf.saved_model.load(str(target / "model"))
        outputs = dict(loaded(_inputs(None)))
        if with_mlm:
            outputs["mlm_logits"] = loaded.mlm(_inputs(letters.POSITIONS))["mlm_logits"]
        _save_outputs(target, outputs)
        _save_outputs(HERE / "model_garden" / kind, outputs)
        _pack(target)


def _write_erf(random):
    """A cased SavedModel of BertEncoderV2 with Keras's "gelu", which is the erf form,
    and a head of the library's own name."""
    encoder = _encoder_v2(inner_activation="gelu")
    inputs, outputs = encoder.inputs, encoder(encoder.inputs)
    logits = layers.ClassificationHead(0, num_classes=3, name="sentence_prediction")(
        outputs["pooled_output"]
    )
    model = tf_keras.Model(inputs=inputs, outputs={**outputs, "logits": logits})
    _randomize(model, random)
    target = _emptied(HERE / "saved_model" / "erf")
    model.save(str(target / "model"), include_optimizer=False, save_format="tf")
    _save_outputs(target, model(_inputs(None)))
    _pack(target)


def _write_other_network():
    """A checkpoint of ALBERT."""
    config = encoders.AlbertEncoderConfig(
        vocab_size=60, embedding_width=8, hidden_size=16, num_layers=2,
        num_attention_heads=2, intermediate_size=16, max_position_embeddings=8,
    )  # fmt: skip
    albert = encoders.build_encoder(
        encoders.EncoderConfig(type="albert", albert=config)
    )
    folder = _emptied(HERE / "model_garden" / "albert")
    tf.train.Checkpoint(encoder=albert).save(str(folder / "ckpt"))


def _encoder_v2(**kwargs):
    encoder = networks.BertEncoderV2(
        vocab_size=CONFIG["vocab_size"],
        hidden_size=CONFIG["hidden_size"],
        num_layers=CONFIG["num_hidden_layers"],
        num_attention_heads=CONFIG["num_attention_heads"],
        inner_dim=CONFIG["intermediate_size"],
        max_sequence_length=CONFIG["max_position_embeddings"],
        type_vocab_size=2,
        **kwargs,
    )
    encoder(_inputs(None))
    return encoder


def _inputs(positions):
    inputs = {name: tf.constant(rows, tf.int32) for name, rows in INPUTS.items()}
    if positions is not None:
        inputs["masked_lm_positions"] = tf.constant(positions, tf.int32)
    return inputs


def _random(random, shape, is_gamma=False):
    return random.normal(float(is_gamma), 0.15, shape).astype(np.float32)


def _randomize(model, random):
    for weight in model.weights:
        weight.assign(_random(random, weight.shape, "gamma" in weight.name))


def _emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _save_outputs(folder, outputs, **others):
    names = ("sequence_output", "pooled_output", "mlm_logits", "logits")
    arrays = {name: np.asarray(outputs[name]) for name in names if name in outputs}
    arrays |= {name: np.asarray(array) for name, array in others.items()}
    features = {**letters.BATCH, "masked_lm_positions": letters.POSITIONS}
    features = {name: np.asarray(rows, np.int32) for name, rows in features.items()}
    np.savez(folder / "expected.npz", **features, **arrays)


def _pack(target):
    """Puts the folder `model` into one file, which is a tenth as large."""
    (target / "model" / "keras_metadata.pb").unlink(missing_ok=True)
    shutil.make_archive(str(target / "model"), "zip", target / "model")
    shutil.rmtree(target / "model")


if __name__ == "__main__":
    main()
