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
# # Inside BERT
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/inside_bert.ipynb)
#
# This notebook shows what happens inside BERT: how text becomes word pieces, which
# words each head attends to, how a word's vector depends on its context, and what the
# model predicts for a mask. It follows section 3 of [the
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
    package = (
        "..[plots,vocabulary]" if is_checkout else "bert_tf[plots,vocabulary]==0.1.0"
    )
    get_ipython().run_line_magic("pip", f"install --quiet '{package}'")

import bert_tf
from bert_tf import notebook
from bert_tf.modeling import inspection

# All files are in this folder. Choose one that outlives the machine, and nothing is
# lost when Colab disconnects: run the cells again, and a training resumes.
# Examples: "/content/drive/MyDrive/bert_tf", "gs://your-bucket/bert_tf".
RUN_DIR = os.environ.get("RUN_DIR")

setup = notebook.prepare("inside_bert", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %%
# %matplotlib inline
import numpy as np
from matplotlib import figure as matplotlib_figure

# The small model in the package, which has read 89 novels. bert-base-uncased is larger.
CHECKPOINT = "bert-tf-mini"
encoder, tokenizer = bert_tf.from_pretrained(CHECKPOINT, head="encoder")
encoder.config

# %% [markdown]
# ## 1. From text to word pieces
#
# First, the text is cleaned, lowercased and split at white space and punctuation. Then,
# every word is split into the longest pieces of the vocabulary, from left to right.

# %%
sentence = "The zoologist couldn't photograph the ptarmigan."
words = bert_tf.BasicTokenizer(do_lower_case=True).tokenize(sentence)
pieces = tokenizer.tokenize(sentence)
print("words: ", words)
print("pieces:", pieces)
print("ids:   ", tokenizer.convert_tokens_to_ids(pieces))
assert "".join(pieces).replace("##", "") == "".join(words)

# %% [markdown]
# ## 2. What each head attends to
#
# Attention(Q, K, V) = softmax(QKᵀ/√d) V. Each row of a matrix belongs to one word piece
# and sums to 1: it says how much of each other piece's value flows into its new vector.

# %%
text = "The cat sat on the mat because it was tired."
features = tokenizer([text])
weights = inspection.attention_weights(encoder, features)
attention = np.stack([np.asarray(layer)[0] for layer in weights])
tokens = tokenizer.convert_ids_to_tokens([int(i) for i in features["input_ids"][0]])
np.testing.assert_allclose(attention.sum(axis=-1), 1, atol=1e-4)  # [L, N, S, S]

num_layers, num_heads = attention.shape[:2]
figure = matplotlib_figure.Figure(
    figsize=(1.3 * num_heads, 1.4 * num_layers), layout="constrained"
)
grid = figure.subplots(num_layers, num_heads, squeeze=False)
for layer in range(num_layers):
    for head in range(num_heads):
        axes = grid[layer, head]
        axes.imshow(attention[layer, head], cmap="Blues", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=6)
figure

# %% [markdown]
# ## 3. One head as lines between words
#
# The picture shows the head in which the last pronoun attends most to a single other
# word.

# %%
source = tokens.index("it") if "it" in tokens else 1
others = np.arange(1, len(tokens) - 1)
others = others[others != source]
best = attention[:, :, source, :][:, :, others]
layer, head, _ = np.unravel_index(np.argmax(best), best.shape)

figure = matplotlib_figure.Figure(figsize=(4, 0.32 * len(tokens) + 0.6))
axes = figure.subplots()
for row, token in enumerate(tokens):
    axes.text(-0.05, row, token, ha="right", va="center")
    axes.text(1.05, row, token, ha="left", va="center")
    for column in range(len(tokens)):
        weight = float(attention[layer, head, row, column])
        color = "#D55E00" if row == source else "#0072B2"
        axes.plot([0, 1], [row, column], color=color, alpha=min(1.0, weight))
axes.set(
    xlim=(-0.6, 1.6),
    ylim=(len(tokens), -1),
    title=f"layer {layer + 1}, head {head + 1}",
)
axes.axis("off")
figure

# %% [markdown]
# ## 4. One word, many contexts
#
# The input vector of "bank" depends only on its position in the sentence. After the
# last layer, the vector depends on the other words, too. The picture shows the two
# directions in which the vectors differ most.

# %%
WORD = "bank"
CONTEXTS = {
    "money": [
        "She opened an account at the bank.",
        "The bank raised its interest rates.",
        "He borrowed money from the bank.",
        "The bank was closed, so I could not pay.",
    ],
    "river": [
        "They sat on the bank of the river.",
        "The boat drifted to the muddy bank.",
        "Trees grow along the bank of the stream.",
        "We fished from the grassy bank.",
    ],
}


def word_vectors(sentences, layer):
    """Returns the vector of the word in each sentence, [B, H]."""
    batch = tokenizer(sentences)
    states = encoder(batch)
    chosen = states["embedding_output"] if layer == 0 else states["sequence_output"]
    word_id = tokenizer.convert_tokens_to_ids([WORD])[0]
    places = np.argmax(np.asarray(batch["input_ids"]) == word_id, axis=1)
    return np.asarray(chosen)[np.arange(len(sentences)), places]


figure = matplotlib_figure.Figure(figsize=(9, 3.6), layout="constrained")
gaps = {}
for axes, layer in zip(figure.subplots(1, 2), (0, num_layers), strict=True):
    vectors = {name: word_vectors(part, layer) for name, part in CONTEXTS.items()}
    together = np.concatenate(list(vectors.values()))
    centered = together - together.mean(axis=0)
    _, _, directions = np.linalg.svd(centered, full_matrices=False)
    for name, part in vectors.items():
        x, y = ((part - together.mean(axis=0)) @ directions[:2].T).T
        axes.scatter(x, y, label=name)
    axes.set_title("input" if layer == 0 else "after the last layer")
    axes.legend(title=WORD)
    unit = together / np.linalg.norm(together, axis=1, keepdims=True)
    cosines = unit @ unit.T
    same = np.kron(np.eye(2), np.ones((4, 4))).astype(bool) & ~np.eye(8, dtype=bool)
    gaps[layer] = cosines[same].mean() - cosines[:4, 4:].mean()
figure

# %%
print(
    "How much more similar two uses in the same sense are than two in different senses "
    f"(cosine): {gaps[0]:.3f} in the input, {gaps[num_layers]:.3f} after the last layer"
)
assert setup.is_tiny or gaps[num_layers] > gaps[0] + 0.05

# %% [markdown]
# ## 5. What the context says about a masked word
#
# The model predicts the masked word from the words on both sides of it. Another context
# gives other candidates.

# %%
SENTENCES = (
    "She opened the [MASK] and went into the garden.",
    "She opened the [MASK] and read the first page.",
    "They sat by the fire and drank a cup of [MASK].",
)
answers = bert_tf.fill_masks(CHECKPOINT, SENTENCES, top_k=5)
figure = matplotlib_figure.Figure(figsize=(10, 2.6), layout="constrained")
all_axes = figure.subplots(1, len(SENTENCES))
for axes, text, answer in zip(all_axes, SENTENCES, answers, strict=True):
    candidates = answer["masks"][0]
    axes.barh(
        [one["token"] for one in candidates][::-1],
        [one["probability"] for one in candidates][::-1],
    )
    axes.set_title(text, fontsize="small", wrap=True)
    axes.set(xlabel="probability")
figure

# %%
print(setup.last_run_on())
