"""The encoder on a different Keras backend, in a process without TensorFlow."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

ON_JAX = """
import sys

class NoTensorFlow:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_text"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTensorFlow())

import absl.logging
import keras
import numpy as np
from bert_tf.modeling import config, pretrainer
from bert_tf.modeling.kernels import dropout_masks, plain, whole_step

def fail(text):
    raise AssertionError(text)

absl.logging.exception = fail  # Keras logs that JAX's attention failed, and goes on.
# Flash attention takes masks [B, T] and [B, F, T], B 3, T 4, N 2.
heads = np.random.default_rng(0).normal(size=(3, 12, 4)).astype("float32")
causal = np.tril(np.ones((3, 4, 4), "int32"))
for visible in (causal[:, 1], causal):
    flash, expected = (
        k.attend(*heads, plain.Sequences(visible, None), num_heads=2, dropout=None)
        for k in (whole_step.WholeStep(), plain.Plain())
    )
    np.testing.assert_allclose(flash, expected, atol=1e-5)

folder = sys.argv[1]
weights = np.load(f"{folder}/weights.npz")
features = dict(np.load(f"{folder}/features.npz"))
model = pretrainer.BertPretrainer(
    config.BertConfig.from_json_file(f"{folder}/bert_config.json")
)
model.build()
for weight in model.weights:
    weight.assign(weights[weight.path.partition("/")[2]])
outputs = model(features)
keys = dropout_masks.keys_of_examples(3, 4, np.arange(4, dtype="int32"))
trained = model(features, training=True, dropout_keys=keys)
assert keras.backend.backend() == "jax"
assert "tensorflow" not in sys.modules
np.savez(
    f"{folder}/jax.npz",
    loss=model.total_loss(features, outputs),
    trained_loss=model.total_loss(features, trained),
    sequence_output=outputs["sequence_output"],
)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="JAX is not installed: pip install jax runs this test",
)
def test_jax_without_tensorflow_gives_the_same_numbers(tmp_path, golden, project_root):
    from bert_tf.checkpoints import loading
    from bert_tf.checkpoints.release import bundle
    from bert_tf.modeling import config as config_module
    from bert_tf.modeling import pretrainer
    from bert_tf.modeling.kernels import dropout_masks

    folder = golden / "model"
    text = (folder / "bert_config.json").read_text(encoding="utf-8")
    (tmp_path / "bert_config.json").write_text(text, encoding="utf-8")
    forward = np.load(folder / "forward.npz")
    features = {name[3:]: forward[name] for name in forward if name.startswith("in_")}
    np.savez(tmp_path / "features.npz", **features)
    prefix = folder / "bert_model.ckpt"
    wanted = bundle.read_names_and_shapes(prefix)
    np.savez(tmp_path / "weights.npz", **bundle.read(prefix, wanted))
    subprocess.run(
        [sys.executable, "-c", ON_JAX, tmp_path],
        cwd=project_root,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    computed = np.load(tmp_path / "jax.npz")

    model = pretrainer.BertPretrainer(
        config_module.BertConfig.from_json_file(folder / "bert_config.json")
    )
    loading.load_checkpoint(model, prefix)
    outputs = model(features)
    keys = dropout_masks.keys_of_examples(3, 4, np.arange(4, dtype="int32"))
    trained = model(features, training=True, dropout_keys=keys)
    np.testing.assert_allclose(
        computed["sequence_output"], outputs["sequence_output"], atol=2e-5
    )
    np.testing.assert_allclose(
        computed["loss"], model.total_loss(features, outputs), rtol=1e-5
    )
    # With dropout too: the masks do not depend on the backend.
    np.testing.assert_allclose(
        computed["trained_loss"], model.total_loss(features, trained), rtol=1e-5
    )
