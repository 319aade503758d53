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
# # Classifying sentences
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/sentence_classification.ipynb)
#
# This notebook fine-tunes a small BERT to classify texts: the sentences that come
# with the package, or your own table. It checks the data, trains, compares the scores
# with those of the majority class, and shows which sentences the model gets wrong. It
# takes minutes on a CPU. It follows section 4.1 of [the
# paper](https://arxiv.org/abs/1810.04805).

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

setup = notebook.prepare("sentence_classification", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. The texts
#
# Each row has a text and its class. Set `UPLOAD = True` to upload your own `.csv` file
# with the columns `text` and `label`. If your columns have other names, pass
# `text_column` and `label_column`. For the movie reviews of the release's own notebook,
# pass `tfds_name="imdb_reviews"`.

# %%

UPLOAD = False

if UPLOAD:
    from google.colab import files

    [train_file] = files.upload()
    dev_file = None
else:
    train_file = notebook.sample_file("topics_train.tsv")
    dev_file = notebook.sample_file("topics_dev.tsv")

notebook.labelled_rows(notebook.sample_file("topics_train.tsv"))[:3]

# %% [markdown]
# ## 2. Data checks
#
# The checks report the balance of the classes, texts that are in both files, truncated
# texts and unknown words.

# %%
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.tasks.classification import options as classification_options

encoder = "bert-tf-mini"  # In the package. On a GPU: bert-base-uncased.
report = fine_tuning_run.run(
    classification_options.RunClassifierOptions(
        check=True,
        train_file=train_file,
        eval_file=dev_file,
        init_checkpoint=encoder,
        output_dir=setup.path("run"),
        max_seq_length=48,
    )
)
print(report)

# %% [markdown]
# ## 3. Training
#
# For small data sets, the paper uses learning rates of 5e-5, 3e-5 or 2e-5, batches of
# 16 or 32, and two to four epochs (appendix A.3). Small encoders need higher rates and
# more epochs. What you leave out, such as the rate, is chosen for the encoder.

# %%
model = bert_tf.fine_tune.classify(
    train_file,
    encoder,
    setup.path("run"),
    validation=dev_file or 0.1,
    device=setup.device,
    dtype=setup.dtype,
    max_seq_length=48,
    train_batch_size=16,
    num_train_epochs=1.0 if setup.is_tiny else 5.0,
    eval_every_steps=20,
)
model.scores

# %% [markdown]
# ## 4. Curves
#
# Solid lines are training values, dashed lines are held-out values, and the dotted line
# is the majority class.

# %%
# %matplotlib inline
from bert_tf.training import plots

plots.curves({"run": setup.path("run")})

# %% [markdown]
# ## 5. Which classes are confused?
#
# All plots and the settings are also in `report.html` in the folder of the run.

# %%
data = plots.read_data(setup.path("run"))
majority = data["baselines"]["eval_accuracy"]["value"]
plots.confusion(**data["confusion"])

# %%
accuracy = model.scores["eval_accuracy"]
print(f"accuracy {accuracy:.3f}, majority class {majority:.3f}")
assert setup.is_tiny or UPLOAD or accuracy > majority + 0.3

# %% [markdown]
# ## 6. The formula
#
# "We use the final hidden vector C corresponding to the first input token ([CLS]) as
# the aggregate representation. The only new parameters introduced during fine-tuning
# are classification layer weights W" (section 4.1): the probabilities are softmax(C
# Wᵀ). The release adds a bias, and C is the output of the pooler. The next cell
# computes the same by hand.

# %%
import numpy as np

classifier, tokenizer = bert_tf.from_pretrained(setup.path("run"))
sentences = ["Knead the dough for ten minutes.", "Thunder rolled over the hills."]
features = tokenizer(sentences)
pooled = np.asarray(classifier.bert(features)["pooled_output"])  # [B, H]
weights = np.asarray(classifier.output_weights)  # [C, H]
logits = pooled @ weights.T + np.asarray(classifier.output_bias)  # [B, C]
expected = np.asarray(classifier(features)["logits"])
np.testing.assert_allclose(logits, expected, atol=1e-4)
np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)

# %% [markdown]
# ## 7. Predictions
#
# Predicting needs only the folder: `bert_tf.load(folder).predict(...)`. The notebook
# `serve_a_model` exports such a run.

# %%
bert_tf.load(setup.path("run")).predict(sentences)

# %%
print(setup.last_run_on())
