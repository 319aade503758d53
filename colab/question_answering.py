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
# # Answering questions about a text
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/question_answering.ipynb)
#
# In this notebook, a model learns to mark the part of a text that answers a question.
# So that it learns within minutes, the notebook generates simple texts about things
# that people bought, and questions about them. To train on SQuAD instead, pass the file
# `train-v1.1.json` as training data. The notebook follows section 4.2 of [the
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

setup = notebook.prepare("question_answering", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. Questions
#
# Each example has a question, a text and the answer, which is a part of the text.

# %%
import random

# Held-out texts use other words than those of the training, so that a model that only
# remembers answers finds none of them.
TRAIN_WORDS = {
    "name": ["Anna", "Boris", "Carla", "David", "Emma", "Felix", "Greta", "Hugo"],
    "thing": ["key", "map", "coat", "lamp", "rope", "bell", "book", "drum"],
    "color": ["red", "blue", "green", "white", "brown"],
    "place": ["kitchen", "garden", "cellar", "garage", "attic", "office"],
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday"],
    "price": ["two", "three", "five", "seven", "eight", "twelve"],
}
DEV_WORDS = {
    "name": ["Ida", "Simon", "Laura", "Peter"],
    "thing": ["chair", "vase", "clock", "ball"],
    "color": ["black", "yellow", "gray"],
    "place": ["hall", "barn", "library", "bedroom"],
    "day": ["Friday", "Saturday", "Sunday"],
    "price": ["four", "six", "nine", "ten"],
}
TEXTS = [
    "{name} keeps the {color} {thing} in the {place}. It was bought on {day} and cost "
    "{price} dollars.",
    "On {day}, {name} paid {price} dollars for a {color} {thing}. Now it is in the "
    "{place}.",
    "There is a {color} {thing} in the {place}. {name} bought it on {day} for {price} "
    "dollars.",
]
QUESTIONS = {
    "name": "Who bought the {thing}?",
    "thing": "What is in the {place}?",
    "color": "What color is the {thing}?",
    "place": "Where is the {thing} of {name}?",
    "day": "When did {name} buy the {thing}?",
    "price": "How many dollars did the {thing} cost?",
}


def example(rng, words):
    """Returns a question, a text and the answer."""
    chosen = {kind: rng.choice(some) for kind, some in words.items()}
    kind, question = rng.choice(list(QUESTIONS.items()))
    return (
        question.format(**chosen),
        rng.choice(TEXTS).format(**chosen),
        chosen[kind],
    )


rng = random.Random(1)
train = [example(rng, TRAIN_WORDS) for _ in range(40 if setup.is_tiny else 1000)]
dev = [example(rng, DEV_WORDS) for _ in range(10 if setup.is_tiny else 100)]
dev[0]

# %% [markdown]
# ## 2. Training

# %%
model = bert_tf.fine_tune.answer_questions(
    train,
    "bert-tf-mini",  # In the package. On a GPU: bert-base-uncased.
    setup.path("run"),
    validation=dev,
    device=setup.device,
    dtype=setup.dtype,
    max_seq_length=48,
    doc_stride=24,
    max_query_length=16,
    train_batch_size=16,
    num_train_epochs=1.0 if setup.is_tiny else 5.0,
)
model.scores

# %%
# %matplotlib inline
from bert_tf.training import plots

plots.curves({"run": setup.path("run")})

# %% [markdown]
# ## 3. Answers
#
# Each text has six words that may be the answer, so a random guess is right in 17 % of
# the cases.

# %%
answers = model.predict([(question, context) for question, context, _ in dev])
correct = sum(
    answer["answer"] == expected
    for answer, (*_, expected) in zip(answers, dev, strict=True)
)
print(f"{correct} of {len(dev)} answers are exactly right")
assert setup.is_tiny or correct > len(dev) * 0.6
for (question, context, expected), answer in zip(dev[:4], answers[:4], strict=True):
    print(f"{context}\n  {question} {answer['answer']!r} (expected {expected!r})")

# %% [markdown]
# ## 4. The formula
#
# "We only introduce a start vector S and an end vector E during fine-tuning. The
# probability of word i being the start of the answer span is computed as a dot product
# between T_i and S followed by a softmax over all of the words" (section 4.2). The
# answer is the span with the highest S·T_i + E·T_j and j ≥ i.

# %%
import numpy as np
from matplotlib import figure as matplotlib_figure

predictor, tokenizer = bert_tf.from_pretrained(setup.path("run"))
question, context, expected = dev[0]
features = tokenizer([question], [context])
outputs = predictor(features)
start, end = (np.asarray(outputs[f"{side}_logits"])[0] for side in ("start", "end"))
pieces = tokenizer.convert_ids_to_tokens([int(i) for i in features["input_ids"][0]])


def softmax(scores):
    """Returns probabilities."""
    exponents = np.exp(scores - scores.max())
    return exponents / exponents.sum()


figure = matplotlib_figure.Figure(figsize=(9, 3), layout="constrained")
axes = figure.subplots()
places = np.arange(len(pieces))
axes.bar(places - 0.2, softmax(start), width=0.4, label="start")
axes.bar(places + 0.2, softmax(end), width=0.4, label="end")
axes.set_xticks(places, pieces, rotation=90, fontsize="small")
axes.set(title=f"expected: {expected}", ylabel="probability")
axes.legend()
figure

# %%
print(setup.last_run_on())
