# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Serving a model
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/serve_a_model.ipynb)
#
# This notebook exports a fine-tuned model to a SavedModel that takes strings and
# returns class names. It queries the SavedModel in this process; the last cells show
# the commands for TensorFlow Serving. Serving needs only TensorFlow and TensorFlow
# Text.

# %%
import importlib.util
import os

from IPython import get_ipython

# Hide TensorFlow's start-up messages.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

if importlib.util.find_spec("bert_tf") is None:  # As on Colab.
    is_checkout = os.path.exists("../setup.py")
    package = "..[plots]" if is_checkout else "bert_tf[plots]==0.1.0"
    get_ipython().run_line_magic("pip", f"install --quiet '{package}'")

import bert_tf
from bert_tf import notebook

# All files are in this folder. Choose one that outlives the machine, and nothing is
# lost when Colab disconnects: run the cells again, and a training resumes.
# Examples: "/content/drive/MyDrive/bert_tf", "gs://your-bucket/bert_tf".
RUN_DIR = os.environ.get("RUN_DIR")

setup = notebook.prepare("serve_a_model", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. A model
#
# You can export the folder of any run. The model in this notebook classifies sentences
# by topic.

# %%

model = bert_tf.fine_tune.classify(
    notebook.sample_file("topics_train.tsv"),
    "bert-tf-mini",
    setup.path("run"),
    validation=notebook.sample_file("topics_dev.tsv"),
    device=setup.device,
    dtype=setup.dtype,
    max_seq_length=32,
    train_batch_size=16,
    num_train_epochs=1.0 if setup.is_tiny else 5.0,
)
model.scores

# %% [markdown]
# ## 2. Export
#
# The folder name is the version that TensorFlow Serving shows. The tokenizer is part of
# the graph.

# %%
import tensorflow as tf

from bert_tf import files
from bert_tf.serving import client
from bert_tf.serving import export

version = 1
while files.exists(setup.path("topics", str(version))):
    version += 1
export_dir = export.export_saved_model(
    setup.path("run"), setup.path("topics", str(version))
)
for folder, _, names in tf.io.gfile.walk(export_dir):
    for name in names:
        path = os.path.join(folder, name)
        print(f"{os.path.relpath(path, export_dir):40} {files.size(path):>12,}")

# %% [markdown]
# ## 3. Signatures
#
# `serving_default` takes strings. `ids` takes word piece ids, for a client with its own
# tokenizer.

# %%
import tensorflow_text  # noqa: F401  # Its operations are in the graph.

loaded = tf.saved_model.load(export_dir)
for name, signature in loaded.signatures.items():
    inputs = signature.structured_input_signature[1]
    print(name, {key: spec.dtype.name for key, spec in inputs.items()})
assert "serving_default" in loaded.signatures

# %% [markdown]
# ## 4. Queries
#
# The SavedModel gives the same answers as the run.

# %%
import numpy as np

sentences = [
    "Knead the dough for ten minutes.",
    "Thunder rolled over the hills.",
    "The violin needs a new string.",
]
served = client.open_saved_model(export_dir).ask(text=sentences)
direct = model.predict(sentences)
for one, other in zip(served, direct, strict=True):
    assert one["label"] == other["label"]
    np.testing.assert_allclose(
        list(one["probabilities"].values()),
        list(other["probabilities"].values()),
        atol=1e-4,
    )
served

# %% [markdown]
# ## 5. Latency
#
# The time of a call depends on the number of texts and on the longest of them.

# %%
# %matplotlib inline
import time

from matplotlib import figure as matplotlib_figure

serve = loaded.signatures["serving_default"]
sizes = (1, 4, 16)
milliseconds = []
for size in sizes:
    batch = tf.constant((sentences * size)[:size])
    serve(text=batch)  # The first call prepares the graph.
    started = time.perf_counter()
    for _ in range(5):
        serve(text=batch)
    milliseconds.append((time.perf_counter() - started) * 200)
figure = matplotlib_figure.Figure(figsize=(5, 2.6), layout="constrained")
axes = figure.subplots()
axes.plot(sizes, milliseconds, marker="o")
axes.set(xlabel="texts per call", ylabel="milliseconds", ylim=(0, None))
figure

# %% [markdown]
# ## 6. TensorFlow Serving
#
# The parent folder of the version is the model. Start the server:
#
#     docker run --publish 8501:8501 --env MODEL_NAME=topics \\
#         --mount type=bind,source=$PWD/topics,target=/models/topics tensorflow/serving
#
# Then query it, with `curl` or with our client:
#
#     curl --data '{"inputs": {"text": ["Knead the dough."]}}' \\
#         http://localhost:8501/v1/models/topics:predict
#
#     bert_tf query --server=http://localhost:8501/v1/models/topics \\
#         --text='Knead the dough.'
#
# A new version is served as soon as its folder is complete: export to `topics/2`.

# %%
print(setup.last_run_on())
