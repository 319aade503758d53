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
# # Finding the passage that answers a query
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/retrieval.ipynb)
#
# A bi-encoder turns queries and passages into vectors, so that the passages of a large
# corpus can be searched by their dot product with the query. This notebook trains one
# on a few hundred pairs, searches with it, and shows how the vectors changed.

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
from bert_tf.demo import notebook

# All files are in this folder. Choose one that outlives the machine, and nothing is
# lost when Colab disconnects: run the cells again, and a training resumes.
# Examples: "/content/drive/MyDrive/bert_tf", "gs://your-bucket/bert_tf".
RUN_DIR = os.environ.get("RUN_DIR")

setup = notebook.prepare("retrieval", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. Queries and passages
#
# A passage is a paragraph of the package's text, and its query is a sentence that was
# taken out of it. The other passages of a batch serve as wrong answers.

# %%
from bert_tf.demo import text


def pairs_of(path):
    """Returns (sentence, rest of its paragraph) for every paragraph of a text."""
    with open(path, encoding="utf-8") as file:
        paragraphs = [part.split("\n") for part in file.read().split("\n\n")]
    found = []
    for sentences in paragraphs:
        for start in range(0, len(sentences) - 3, 4):
            part = sentences[start : start + 4]
            found.append((part[2], " ".join(part[:2] + part[3:])))
    return found


train = pairs_of(text.sample_file("corpus.txt"))
dev = pairs_of(text.sample_file("corpus_heldout.txt"))
train = train[:24] if setup.is_tiny else train
print(len(train), "pairs for training,", len(dev), "held out")
dev[0]

# %% [markdown]
# ## 2. Before training

# %%
import numpy as np

encoder = setup.encoder("bert-mini")


def ranks(vectors_of):
    """Returns the rank of the right passage for each held-out query; 1 is best."""
    queries = vectors_of([query for query, _ in dev])  # [Q, H]
    passages = vectors_of([passage for _, passage in dev])  # [P, H]
    scores = queries @ passages.T  # [Q, P]
    return 1 + np.sum(scores > np.diag(scores)[:, np.newaxis], axis=1), scores


before, scores_before = ranks(bert_tf.load(encoder, head="encoder").embed)
print(f"recall@1 before training: {np.mean(before == 1):.3f}")

# %% [markdown]
# ## 3. Training
#
# "Sentence vectors" of a BERT that was not trained for it are poor: its [CLS] vector is
# "not a meaningful sentence representation without fine-tuning" (note 9 of the paper).

# %%
model = bert_tf.fine_tune.retrieve(
    train,
    encoder,
    setup.path("run"),
    validation=dev,
    device=setup.device,
    dtype=setup.dtype,
    max_query_length=32,
    max_seq_length=64,
    pooling="mean",
    train_batch_size=12 if setup.is_tiny else 24,
    learning_rate=1e-4,
    num_train_epochs=1.0 if setup.is_tiny else 4.0,
    log_every_steps=2,
)
model.scores

# %%
# %matplotlib inline
from bert_tf.training import curves

curves.figure({"run": setup.path("run")})

# %% [markdown]
# ## 4. After training
#
# An encoder that was already trained on pairs of sentences, such as all-MiniLM, gains
# little or nothing from a few hundred pairs. A plain BERT has more to gain. The stored
# outputs are those of all-MiniLM.

# %%
from matplotlib import figure as matplotlib_figure

after, scores_after = ranks(model.embed)
print(f"recall@1: {np.mean(before == 1):.3f} before, {np.mean(after == 1):.3f} after")
print(f"by chance: {1 / len(dev):.3f}")
assert setup.is_tiny or np.mean(after == 1) > 3 / len(dev)

figure = matplotlib_figure.Figure(figsize=(9, 4), layout="constrained")
for axes, (title, scores) in zip(
    figure.subplots(1, 2),
    {"before training": scores_before, "after training": scores_after}.items(),
    strict=True,
):
    axes.imshow(scores, cmap="Blues")
    axes.set(title=title, xlabel="passage", ylabel="query")
figure

# %% [markdown]
# ## 5. Searching
#
# `run_retrieval --search=faiss` searches millions of passages.

# %%
for answer in model.predict(["Who repaired the roof?", "What is growing?"], top_k=2):
    print(answer["query"])
    for passage in answer["passages"]:
        print(f"    {passage['score']:.3f} {passage['text'][:90]}")

# %%
print(setup.last_run_on())
