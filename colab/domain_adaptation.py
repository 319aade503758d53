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
# # Adapting BERT to a domain
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/domain_adaptation.ipynb)
#
# Words are used differently in recipes, in patents and in medical notes. Continuing the
# pretraining on text of the domain ("further pretraining") often helps a classifier of
# that domain, and needs no labels. The training objective stays that of section 3.1 of
# [the paper](https://arxiv.org/abs/1810.04805). This notebook measures the perplexity
# on held-out text. To see what a classifier gains, pass both checkpoints to
# `bert_tf.fine_tune.classify`.

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

# All files are in this folder. Choose one that outlives the machine, and nothing is
# lost when Colab disconnects: run the cells again, and a training resumes.
# Examples: "/content/drive/MyDrive/bert_tf", "gs://your-bucket/bert_tf".
RUN_DIR = os.environ.get("RUN_DIR")

setup = notebook.prepare("domain_adaptation", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. The domain
#
# The general model is `bert-tf-mini`, which has read 89 novels and is in the package.
# The domain is the text of the package: cooking, gardens, music and weather. The tool
# reads text with one sentence per line and a blank line between documents.

# %%
train_file = notebook.sample_file("corpus.txt")
heldout_file = notebook.sample_file("corpus_heldout.txt")
with open(train_file, encoding="utf-8") as file:
    print(file.read()[:400])

# %% [markdown]
# ## 2. Continued pretraining
#
# `recipe.choose` is `--recipe=auto` of the command line. It chooses what is not given,
# such as a learning rate that suits the size of the model. The run evaluates the
# checkpoint before the first step, and warns if the held-out loss is higher later.

# %%
from bert_tf import recipe
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow

num_steps = 2 if setup.is_tiny else 300
given = {
    "init_checkpoint": "bert-tf-mini",
    "input_file": train_file,
    "eval_input_file": heldout_file,
    "output_dir": setup.path("adapted"),
    "do_train": True,
    "do_eval": True,
    "num_train_steps": num_steps,
    "eval_every_steps": max(1, num_steps // 6),
    "device": setup.device,
    "dtype": setup.dtype,
}
chosen = recipe.choose(pretraining_options.RunPretrainingOptions, given)
print(recipe.shown(chosen))
options = pretraining_options.RunPretrainingOptions(**given | chosen)
print(pretraining_workflow.run(options))

# %%
# %matplotlib inline
from bert_tf.training import plots

plots.curves({"adapted": options.output_dir})

# %%
import math

from bert_tf.training import run_folder

losses = [
    line["eval_masked_lm_loss"]
    for line in run_folder.RunFolder(options.output_dir).read_metrics()
    if "eval_masked_lm_loss" in line
]
for name, loss in {"before": losses[0], "after": losses[-1]}.items():
    print(f"{name:8} held-out perplexity {math.exp(loss):.1f}")
assert setup.is_tiny or losses[-1] < losses[0]

# %%
SENTENCES = ["Knead the [MASK] for ten minutes.", "Water the [MASK] in the evening."]
for checkpoint in ("bert-tf-mini", options.output_dir):
    answers = bert_tf.fill_masks(checkpoint, SENTENCES, top_k=3)
    for text, answer in zip(SENTENCES, answers, strict=True):
        (likeliest,) = answer["masks"]
        print(text, ", ".join(one["token"] for one in likeliest))

# %% [markdown]
# ## 3. Words of the domain
#
# `bert_tf vocabulary --fill_unused` and `bert_tf convert --add_words` put words of the
# domain into the vocabulary, so that they are one piece instead of many.

# %%
_, tokenizer = bert_tf.from_pretrained(options.output_dir, head="encoder")
[tokenizer.tokenize(word) for word in ("sourdough", "mulching", "thunderstorm")]

# %%
print(setup.last_run_on())
