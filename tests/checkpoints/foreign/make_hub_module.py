"""Writes a small module of TF Hub's series 1: the release's own code, in TensorFlow 1.

    pip install tensorflow-cpu==2.12.1 tensorflow-hub==0.12.0 protobuf==3.20.3
    pip install --no-deps bert-tensorflow==1.0.4
    python make_hub_module.py                # fills hub_module/

Nothing of this package takes part. `tensorflow.contrib`, which is no more, is stood in
for by its layer normalization, with the same variables and ops.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import types

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"

import letters
import numpy as np
import tensorflow.compat.v1 as tf
import tensorflow_hub as hub

HERE = pathlib.Path(__file__).resolve().parent / "hub_module"


def layer_norm(inputs, begin_norm_axis, begin_params_axis, scope):
    """Does what tensorflow.contrib.layers.layer_norm did."""
    del begin_params_axis
    with tf.variable_scope(scope, "LayerNorm"):
        size = inputs.shape[-1:]
        beta = tf.get_variable("beta", size, initializer=tf.zeros_initializer())
        gamma = tf.get_variable("gamma", size, initializer=tf.ones_initializer())
        mean, variance = tf.nn.moments(inputs, [begin_norm_axis], keepdims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)


contrib = types.ModuleType("tensorflow.contrib")
contrib.layers = types.SimpleNamespace(layer_norm=layer_norm)
sys.modules["tensorflow.contrib"] = contrib

from bert import modeling  # noqa: E402 (needs the stand-in above)


def main():
    """Rewrites everything."""
    tf.disable_eager_execution()
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        vocab_file = pathlib.Path(folder) / "vocab.txt"
        vocab_file.write_text("".join(f"{token}\n" for token in letters.TOKENS))
        spec = hub.create_module_spec(
            lambda is_training: _module(str(vocab_file), is_training),
            tags_and_args=[
                ({"train"}, {"is_training": True}),
                (set(), {"is_training": False}),
            ],
        )
        module = hub.Module(spec, trainable=True)
        inputs = {name: tf.constant(rows) for name, rows in letters.BATCH.items()}
        outputs = module(inputs, signature="tokens", as_dict=True)
        random = np.random.default_rng(20180817)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for variable in tf.global_variables():
                mean = float("gamma" in variable.name)
                variable.load(random.normal(mean, 0.15, variable.shape), session)
            values = session.run(outputs)
            module.export(f"{folder}/model", session)
        np.savez(
            HERE / "expected.npz",
            **{
                name: np.asarray(rows, np.int32) for name, rows in letters.BATCH.items()
            },
            **values,
        )
        shutil.make_archive(str(HERE / "model"), "zip", f"{folder}/model")


def _module(vocab_file, is_training):
    config = modeling.BertConfig(
        vocab_size=len(letters.TOKENS), hidden_size=16, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=24, max_position_embeddings=24,
        type_vocab_size=2,
    )  # fmt: skip
    ids = {name: tf.placeholder(tf.int32, [None, None], name) for name in letters.BATCH}
    bert = modeling.BertModel(
        config, is_training, ids["input_ids"], ids["input_mask"], ids["segment_ids"]
    )
    outputs = {
        "pooled_output": bert.get_pooled_output(),
        "sequence_output": bert.get_sequence_output(),
    }
    hub.add_signature("tokens", ids, outputs)
    vocabulary = tf.constant(vocab_file, tf.string, name="vocab_file")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, vocabulary)
    is_lower = tf.constant(True, name="do_lower_case")
    hub.add_signature(
        "tokenization_info", {}, {"vocab_file": vocabulary, "do_lower_case": is_lower}
    )


if __name__ == "__main__":
    main()
