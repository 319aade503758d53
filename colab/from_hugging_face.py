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
# # From Hugging Face's TFBert classes
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/from_hugging_face.ipynb)
#
# Transformers 5 has no TensorFlow models. This notebook moves a program that uses
# `TFBertForSequenceClassification` to bert_tf, line by line. At the end, it writes the
# model in Hugging Face's format again, with identical weights.

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

setup = notebook.prepare("from_hugging_face", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. The old program
#
#     import tensorflow as tf
#     from transformers import BertTokenizer, TFBertForSequenceClassification
#
#     tokenizer = BertTokenizer.from_pretrained("google/bert_uncased_L-4_H-256_A-4")
#     model = TFBertForSequenceClassification.from_pretrained(
#         "google/bert_uncased_L-4_H-256_A-4", num_labels=4
#     )
#     encoded = tokenizer(texts, padding=True, truncation=True, return_tensors="tf")
#     model.compile("adam", model.hf_compute_loss)
#     model.fit(dict(encoded), labels, epochs=3)
#     logits = model(dict(encoded)).logits
#
# ## 2. Names
#
# | Hugging Face | here |
# |---|---|
# | `BertTokenizer.from_pretrained(p)` | `bert_tf.FullTokenizer(p)` |
# | `tokenizer(a, b, max_length=n)` | `tokenizer(a, b, max_seq_length=n)` |
# | `attention_mask`, `token_type_ids` | the same, or `input_mask`, `segment_ids` |
# | `TFBertModel.from_pretrained(p)` | `bert_tf.from_pretrained(p, head="encoder")` |
# | `last_hidden_state`, `pooler_output` | `sequence_output`, `pooled_output` |
# | `hidden_states[1:]`, `hidden_states[0]` | `all_encoder_layers`, `embedding_output` |
# | `TFBertForSequenceClassification` | `bert_tf.BertClassifier` |
# | `TFBertForQuestionAnswering` | `bert_tf.BertSpanPredictor` |
# | `TFBertForTokenClassification` | `bert_tf.BertTokenClassifier` |
# | `TFBertForMultipleChoice` | `bert_tf.BertMultipleChoice` |
# | `TFBertForPreTraining` | `bert_tf.BertPretrainer` |
# | `save_pretrained(p)` | `bert_tf convert --target_format=hugging_face` |
#
# ## 3. The checkpoint
#
# The checkpoint may be a Hugging Face folder, a name on its hub, or the name of a
# released model. So that the notebook also works without a network, the next cell
# writes such a folder.

# %%
from bert_tf import files
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import workflow as conversion_workflow

checkpoint = "bert-tf-mini"  # In the package.
folder = setup.path("hugging_face")
report = conversion_workflow.run(
    conversion_options.ConvertCheckpointOptions(
        source=checkpoint,
        target=folder,
        target_format="hugging_face",
        do_lower_case=True,
    )
)
files.list_folder(folder)

# %% [markdown]
# ## 4. The new program

# %%
import keras
import numpy as np

rows = notebook.labelled_rows(notebook.sample_file("topics_train.tsv"))
rows = rows[:16] if setup.is_tiny else rows
names = sorted({label for _, label in rows})
texts = [sentence for sentence, _ in rows]
labels = np.array([names.index(label) for _, label in rows])

encoder, tokenizer = bert_tf.from_pretrained(folder, head="encoder")
model = bert_tf.BertClassifier(encoder.config, num_labels=len(names))
print(bert_tf.load_checkpoint(model, folder))
encoded = tokenizer(texts, max_seq_length=32)
model.compile(keras.optimizers.Adam(3e-4), metrics=["accuracy"])
history = model.fit(
    encoded, labels, batch_size=16, epochs=1 if setup.is_tiny else 5, verbose=2
)

# %%
# %matplotlib inline
from matplotlib import figure as matplotlib_figure

figure = matplotlib_figure.Figure(figsize=(5, 3), layout="constrained")
axes = figure.subplots()
axes.plot(history.epoch, history.history["accuracy"], marker="o", label="training")
axes.axhline(1 / len(names), linestyle=":", color="gray", label="majority class")
axes.set(xlabel="epoch", title="accuracy", ylim=(0, 1))
axes.legend()
figure

# %%
held_out = notebook.labelled_rows(notebook.sample_file("topics_dev.tsv"))
outputs = model(tokenizer([sentence for sentence, _ in held_out], max_seq_length=32))
predicted = np.argmax(np.asarray(outputs["logits"]), axis=-1)
accuracy = np.mean(
    [names[i] == label for i, (_, label) in zip(predicted, held_out, strict=True)]
)
print(f"accuracy on {len(held_out)} held-out sentences: {accuracy:.3f}")
assert setup.is_tiny or accuracy > 0.5

# %% [markdown]
# ## 5. Hugging Face's input names
#
# Both names give the same numbers. An unknown name is an error.

# %%
ours = tokenizer(["The rain stopped at noon."])
theirs = {
    "input_ids": ours["input_ids"],
    "attention_mask": ours["input_mask"],
    "token_type_ids": ours["segment_ids"],
}
same = [np.asarray(encoder(one)["sequence_output"]) for one in (ours, theirs)]
np.testing.assert_array_equal(*same)
try:
    encoder({**theirs, "position_bias": ours["input_ids"]})
except ValueError as error:
    print(error)

# %% [markdown]
# ## 6. Back again
#
# The weights of the encoder, read from Hugging Face's format and from the original, are
# bit-identical. The pooler of both is new, because `bert-tf-mini` has none.

# %%
original, _ = bert_tf.from_pretrained(checkpoint, head="encoder")
pairs = list(zip(original.weights, encoder.weights, strict=True))
pairs = [pair for pair in pairs if "pooler" not in pair[0].path]
for one, other in pairs:
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
print(f"{len(pairs)} weights are equal.")

# %%
print(setup.last_run_on())
