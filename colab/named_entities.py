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
# # Named entities: a tag for every word
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/named_entities.ipynb)
#
# In this notebook, a tagger learns to find the people and places in a sentence. So that
# it learns within minutes, the notebook generates simple sentences. To train on a file
# in the format of CoNLL-2003 instead, use `bert_tf.fine_tune.tag("train.txt", ...)`.
# The notebook follows section 5.3 of [the paper](https://arxiv.org/abs/1810.04805).

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

setup = notebook.prepare("named_entities", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. Sentences
#
# `B-PER` is the first word of a person's name, `I-PER` is a further word of it, and `O`
# is a word outside of all names. The held-out sentences contain first names and towns
# that do not occur in training, so the model has to use the context.

# %%
import random

FIRST = ["Anna", "Boris", "Carla", "David", "Emma", "Felix", "Greta", "Hugo", "Ida"]
LAST = ["Berg", "Stone", "Rivers", "Marsh", "Field", "Lake", "Hill", "Wood"]
TOWNS = ["Paris", "London", "Berlin", "Rome", "Vienna", "Madrid", "Oslo", "Dublin"]
FRAMES = [
    "{person} lives in {town} .",
    "Yesterday {person} met {person} near {town} .",
    "The train from {town} to {town} was late .",
    "In {town} , {person} sold the old house .",
    "{person} wrote a letter to {person} .",
    "The baker kneaded the dough and the rain fell .",
]


def sentence(rng, first, towns):
    """Returns the words of a sentence and their tags."""
    words, tags = [], []
    for word in rng.choice(FRAMES).split():
        if word == "{person}":
            words += [rng.choice(first), rng.choice(LAST)]
            tags += ["B-PER", "I-PER"]
        elif word == "{town}":
            words.append(rng.choice(towns))
            tags.append("B-LOC")
        else:
            words.append(word)
            tags.append("O")
    return words, tags


rng = random.Random(1)
train = [
    sentence(rng, FIRST[:6], TOWNS[:5]) for _ in range(60 if setup.is_tiny else 400)
]
dev = [sentence(rng, FIRST[6:], TOWNS[5:]) for _ in range(20 if setup.is_tiny else 100)]
dev[0]

# %% [markdown]
# ## 2. Training

# %%
model = bert_tf.fine_tune.tag(
    train,
    "bert-tf-mini",  # In the package. On a GPU: bert-base-uncased.
    setup.path("run"),
    validation=dev,
    device=setup.device,
    dtype=setup.dtype,
    max_seq_length=48,
    train_batch_size=16,
    num_train_epochs=1.0 if setup.is_tiny else 5.0,
)
model.scores

# %%
# %matplotlib inline
from bert_tf.training import plots

plots.curves({"run": setup.path("run")})

# %% [markdown]
# ## 3. What the model found
#
# Scores count whole entities: an entity is right only if its words and its type are
# right. Always answering `O` has an F1 of 0.

# %%
from IPython import display

COLORS = {"PER": "#56B4E9", "LOC": "#E69F00"}


def highlighted(answer):
    """Returns the words of an answer as HTML, entities in color."""
    shown = []
    for word, tag in zip(answer["words"], answer["tags"], strict=True):
        color = COLORS.get(tag[2:])
        style = f"background:{color};color:black;padding:0 .2em" if color else ""
        shown.append(f'<span style="{style}" title="{tag}">{word}</span>')
    return "<p>" + " ".join(shown) + "</p>"


answers = model.predict([words for words, _ in dev])
display.HTML("".join(highlighted(answer) for answer in answers[:6]))

# %%
f1 = model.scores["eval_f1"]
print(f"F1 of whole entities: {f1:.3f}")
assert setup.is_tiny or f1 > 0.7

# %% [markdown]
# ## 4. A word is more than one piece
#
# The paper feeds "the representation of the first sub-token" of each word to the
# classifier (section 5.3). The other pieces get no tag.

# %%
_, tokenizer = bert_tf.from_pretrained(setup.path("run"), head="encoder")
words = dev[0][0]
pieces = [tokenizer.tokenize(word) for word in words]
[(word, parts, "tag of " + parts[0]) for word, parts in zip(words, pieces, strict=True)]

# %% [markdown]
# ## 5. From one score per word to entities

# %%
import collections

pairs = collections.Counter(
    (true, found)
    for (_, tags), answer in zip(dev, answers, strict=True)
    for true, found in zip(tags, answer["tags"], strict=True)
)
labels = sorted({label for pair in pairs for label in pair})

plots.confusion(labels, [[pairs[true, found] for found in labels] for true in labels])

# %%
print(setup.last_run_on())
