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
# # Fine-tuning a released BERT
#
# This notebook fine-tunes a released model to classify movie reviews, or your own
# texts. It checks the data, trains, shows scores and wrong answers, predicts, and
# exports the model for serving. The settings are those of the release's own notebook,
# which reached an accuracy of 0.8664: 5,000 reviews for training and 5,000 for
# evaluation, batches of 32, learning rate 2e-5, three epochs, 128 pieces.
#
# Training takes minutes on a GPU, less on a TPU, and hours on a CPU. Install the
# package first: `pip install '.[datasets,plots]'` in a checkout.

# %%
import os
import tempfile

# Hide TensorFlow's start-up messages.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

import bert_tf

# BERT_TF_TINY=1 runs every cell in seconds without a network, for testing. The model
# learns nothing then.
tiny = bool(os.environ.get("BERT_TF_TINY"))
folder = tempfile.mkdtemp(prefix="fine_tune_classifier_")

# %% [markdown]
# ## 1. The pretrained model
#
# A released model is given by its name and downloaded once. A path works too: a folder
# of the release or of Hugging Face, a Keras file, or a run of `run_pretraining`.

# %%
start = {"init_checkpoint": "bert-base-uncased"}

if tiny:  # Use random weights and a small vocabulary instead.
    from bert_tf.demo import text
    from bert_tf.tokenization import learning

    vocabulary = learning.learn_vocabulary(
        [text.sample_file("corpus.txt")], vocab_size=400, do_lower_case=True
    )
    start = {
        "vocab_file": os.path.join(folder, "vocab.txt"),
        "bert_config_file": os.path.join(folder, "bert_config.json"),
    }
    vocabulary.save(start["vocab_file"])
    config = bert_tf.BertConfig.of_size("L-1_H-64", vocab_size=len(vocabulary))
    with open(start["bert_config_file"], "w", encoding="utf-8") as file:
        file.write(config.to_json_string())
start

# %% [markdown]
# ## 2. The texts
#
# Use a TensorFlow dataset by its name, or your own tables (`.tsv`, `.csv` or `.jsonl`)
# with the names of their columns:
#
#     data = {
#         "train_file": "train.csv",
#         "eval_file": "dev.csv",
#         "text_column": "review",
#         "label_column": "stars",
#     }

# %%
data = {
    "tfds_name": "imdb_reviews",
    "tfds_splits": ("train[:5000]", "test[:5000]", "test[5000:5100]"),
}

if tiny:
    data = {
        "train_file": text.sample_file("topics_train.tsv"),
        "eval_file": text.sample_file("topics_dev.tsv"),
    }
data

# %% [markdown]
# ## 3. Data checks
#
# The checks report the balance of the classes, duplicates within and between the parts,
# truncated texts, unknown words, and the expected training time.

# %%
from bert_tf.data_checks import options as data_checks_options
from bert_tf.data_checks import workflow as data_checks_workflow

max_seq_length = 32 if tiny else 128
given = {
    name: (value,) if name == "train_file" else value for name, value in data.items()
}
findings = data_checks_workflow.run(
    data_checks_options.CheckDataOptions(
        task="classification", max_seq_length=max_seq_length, **start, **given
    )
)
print(findings.report())

# %% [markdown]
# ## 4. Training
#
# For small data sets, the paper uses learning rates of 5e-5, 3e-5 or 2e-5, batches of
# 16 or 32, and two to four epochs. If training is interrupted, run the cell again to
# resume. Set `device="tpu"` on a TPU and `device="mirrored"` on several GPUs.
# `dtype="mixed_bfloat16"` is faster on both.

# %%
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import workflow as classification_workflow

options = classification_options.RunClassifierOptions(
    **start,
    **data,
    output_dir=os.path.join(folder, "run"),
    do_train=True,
    do_eval=True,
    max_seq_length=max_seq_length,
    train_batch_size=32,
    eval_batch_size=32,
    learning_rate=2e-5,
    num_train_epochs=1.0 if tiny else 3.0,
    log_every_steps=1 if tiny else 10,
    eval_every_steps=5 if tiny else 100,
)
classification_workflow.train(options)

# %%
# %matplotlib inline
from bert_tf.training import curves

curves.figure({"fine-tuning": options.output_dir})

# %% [markdown]
# ## 5. Scores
#
# The scores are measured on unseen texts. For a data set this small, train with several
# seeds: `num_restarts=5` keeps the best run and reports mean and standard deviation.

# %%
scores = classification_workflow.evaluate(options)
scores

# %% [markdown]
# ## 6. Wrong answers
#
# The model card lists ten wrong answers, with settings, data and scores. The plot below
# shows how confident the model is. If it is often confident and wrong, check the labels
# first.

# %%
with open(os.path.join(options.output_dir, "README.md"), encoding="utf-8") as file:
    print(file.read())

# %%
import matplotlib.figure

model = bert_tf.load(options.output_dir)
texts = [
    "I laughed, I cried, and I will see it again.",
    "Two hours of my life that I will never get back.",
    "The first half drags, but the end makes up for it.",
]
answers = model.predict(texts)
likeliest = [max(answer["probabilities"].values()) for answer in answers]

figure = matplotlib.figure.Figure(figsize=(6, 2), layout="constrained")
axes = figure.subplots()
axes.barh(
    [
        f"{answer['label']}: {text[:32]}…"
        for answer, text in zip(answers, texts, strict=True)
    ],
    likeliest,
)
axes.set(xlim=(0, 1), title="probability of the predicted class")
figure

# %% [markdown]
# ## 7. Serving
#
# The SavedModel takes strings and returns class names and probabilities. TF Serving can
# load it, and so can any program with TensorFlow and TensorFlow Text.

# %%
from bert_tf.serving import client
from bert_tf.serving import export

export_dir = export.export_saved_model(
    options.output_dir, os.path.join(folder, "exported", "1")
)
client.open_saved_model(export_dir).predict(texts)
