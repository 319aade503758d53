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
# on about a hundred pairs, searches with it, and shows how the vectors changed.

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

setup = notebook.prepare("retrieval", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. Queries and passages
#
# Customers write "my kettle", but the manuals say "Orla". No released model knows the
# product names of this shop, because they are invented. The training pairs show which
# name belongs to which product. The held-out pairs combine products and problems in
# ways that do not occur in training.

# %%
PRODUCTS = {
    "kettle": "Orla",
    "lamp": "Vinto",
    "radio": "Kemba",
    "heater": "Tarno",
    "printer": "Zelie",
    "camera": "Fendra",
    "drill": "Molvo",
    "mixer": "Rubex",
    "toaster": "Sanwi",
    "fan": "Dolmi",
    "telephone": "Pexal",
    "clock": "Quorin",
}
PROBLEMS = {
    "My {} does not switch on.": "No power. Replace the fuse in the plug.",
    "My {} smells as if it burns.": "Smoke. Unplug it and call our service.",
    "Why is my {} so loud?": "Noise. Tighten the four screws underneath.",
    "I dropped my {} and it cracked.": "Broken housing. Order part 20.",
    "My {} was out in the rain.": "Moisture. Let it dry for two days.",
    "There are stains on my {}.": "Cleaning. Wipe with a cloth, without soap.",
    "My {} stops after a minute.": "Overheating. Keep the vents free.",
    "The cable of my {} is too short.": "Extensions. Use a lead of three metres.",
    "I do not want my {} any more.": "Returns. Send it back within thirty days.",
    "What can I do with my old {}?": "Disposal. Take it to a recycling centre.",
    "How long may I complain about my {}?": "Warranty. It ends after two years.",
    "Is my {} safe for children?": "Minors. Use it from the age of eight.",
}
pairs = [
    (query.format(product), f"{name}: {passage}")
    for product, name in PRODUCTS.items()
    for query, passage in PROBLEMS.items()
]
# Of each product, and of each problem, every fourth pair is held out.
is_held_out = [(i // len(PROBLEMS) + i) % 4 == 0 for i in range(len(pairs))]
dev = [pair for pair, held in zip(pairs, is_held_out, strict=True) if held]
train = [pair for pair, held in zip(pairs, is_held_out, strict=True) if not held]
passages = [passage for _, passage in pairs]
train = train[:24] if setup.is_tiny else train
print(len(train), "pairs for training,", len(dev), "held out")
dev[:3]

# %% [markdown]
# ## 2. Before training

# %%
import numpy as np

encoder = "bert-tf-mini"  # In the package.


def ranks(vectors_of):
    """Returns the rank of the relevant passage among all, for each held-out query."""
    scores = vectors_of([query for query, _ in dev]) @ vectors_of(passages).T  # [Q, P]
    right = scores[range(len(dev)), [passages.index(passage) for _, passage in dev]]
    return 1 + np.sum(scores > right[:, np.newaxis], axis=1), scores


before, scores_before = ranks(bert_tf.load(encoder, head="encoder").embed)
print(f"recall@1 before training: {np.mean(before == 1):.3f}")

# %% [markdown]
# ## 3. Training
#
# The vectors of a BERT that was not trained for retrieval are poor: its `[CLS]` vector
# is "not a meaningful sentence representation without fine-tuning" (note 9 of the
# paper).

# %%
model = bert_tf.fine_tune.retrieve(
    train,
    encoder,
    setup.path("run"),
    validation=dev,
    corpus=passages,
    device=setup.device,
    dtype=setup.dtype,
    max_query_length=32,
    max_seq_length=32,
    pooling="mean",
    train_batch_size=12 if setup.is_tiny else 24,
    learning_rate=3e-4,
    num_train_epochs=1.0 if setup.is_tiny else 6.0,
)
model.scores

# %%
# %matplotlib inline
from bert_tf.training import plots

plots.curves({"run": setup.path("run")})

# %% [markdown]
# ## 4. After training
#
# The relevant passage must come first among all, including those of training. In
# the picture, each block of columns has the passages of one product. Before training,
# the columns of the same problem look alike in all blocks; after training, one block
# stands out in each row.

# %%
from matplotlib import figure as matplotlib_figure

after, scores_after = ranks(model.embed)
print(f"recall@1: {np.mean(before == 1):.3f} before, {np.mean(after == 1):.3f} after")
print(f"by chance: {1 / len(passages):.3f}")
assert setup.is_tiny or np.mean(after == 1) > np.mean(before == 1) + 0.2

figure = matplotlib_figure.Figure(figsize=(9, 5), layout="constrained")
for axes, (title, scores) in zip(
    figure.subplots(2, 1),
    {"before training": scores_before, "after training": scores_after}.items(),
    strict=True,
):
    axes.imshow(scores, cmap="Blues")
    axes.set(title=title, xlabel="passage", ylabel="held-out query")
figure

# %% [markdown]
# ## 5. Searching

# %%
queries = ["The fan broke when it fell.", "Rain came in and my drill got wet."]
for answer in model.predict(queries, top_k=2):
    print(answer["query"])
    for passage in answer["passages"]:
        print(f"    {passage['score']:.3f} {passage['text'][:90]}")

# %%
print(setup.last_run_on())
