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
# `bert_tf.fine_tune.classify`. With models as small as these, the difference is only
# noise.

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
# ## 1. A general model
#
# On Colab, start from a released model: set `GENERAL = "bert-base-uncased"`. Here, a
# very small model is pretrained first, on one half of the package's text.

# %%
from bert_tf import files
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from bert_tf.tokenization import learning

GENERAL = None
NUM_STEPS = 2 if setup.is_tiny else 600
lengths = {"max_seq_length": 32, "max_predictions_per_seq": 5}

with open(notebook.sample_file("corpus.txt"), encoding="utf-8") as file:
    documents = file.read().strip().split("\n\n")
with open(notebook.sample_file("corpus_heldout.txt"), encoding="utf-8") as file:
    held_out = file.read()
half = len(documents) // 2
parts = {
    "general": "\n\n".join(documents[:half]),
    "domain": "\n\n".join(documents[half:]),
    "heldout": held_out,
}
for name, content in parts.items():
    with files.open_file(setup.path(f"{name}.txt"), "w") as file:
        file.write(content + "\n")

vocabulary = learning.learn_vocabulary(
    [setup.path("general.txt")], vocab_size=2000, do_lower_case=True
)
vocabulary.save(setup.path("vocab.txt"))
config = bert_tf.BertConfig.of_size(
    "tiny", vocab_size=len(vocabulary), max_position_embeddings=128
)
with files.open_file(setup.path("bert_config.json"), "w") as file:
    file.write(config.to_json_string())

for name in parts:
    pretraining_data_workflow.create_data(
        pretraining_data_options.CreatePretrainingDataOptions(
            input_file=setup.path(f"{name}.txt"),
            output_file=setup.path(f"{name}.tfrecord"),
            vocab_file=setup.path("vocab.txt"),
            dupe_factor=1 if setup.is_tiny else 20,
            next_sentence=False,
            **lengths,
        )
    )


# %%
def pretrain(name, records, learning_rate, **start):
    """Pretrains; returns the scores on the held-out text."""
    options = pretraining_options.RunPretrainingOptions(
        input_file=setup.path(records),
        eval_input_file=setup.path("heldout.tfrecord"),
        vocab_file=setup.path("vocab.txt"),
        output_dir=setup.path(name),
        do_train=True,
        do_eval=True,
        train_batch_size=8 if setup.is_tiny else 32,
        eval_batch_size=32,
        max_eval_steps=0,
        learning_rate=learning_rate,
        num_train_steps=NUM_STEPS,
        num_warmup_steps=NUM_STEPS // 10,
        log_every_steps=max(1, NUM_STEPS // 50),
        eval_every_steps=max(1, NUM_STEPS // 6),
        device=setup.device,
        dtype=setup.dtype,
        **start,
        **lengths,
    )
    pretraining_workflow.train(options)
    return pretraining_workflow.evaluate(options)


if GENERAL is None:
    GENERAL = setup.path("general")
    before = pretrain(
        "general",
        "general.tfrecord",
        1e-3,
        bert_config_file=setup.path("bert_config.json"),
    )
    print(before)

# %% [markdown]
# ## 2. The domain
#
# The same tool continues from a checkpoint. With a lower learning rate and a new
# warm-up, the model keeps what it has learned before.

# %%
after = pretrain("adapted", "domain.tfrecord", 5e-4, init_checkpoint=GENERAL)
after

# %%
# %matplotlib inline
from bert_tf.training import plots

plots.curves({"general": GENERAL, "adapted": setup.path("adapted")})

# %%
import math

for name, scores in {"general": before, "adapted": after}.items():
    perplexity = math.exp(scores["masked_lm_loss"])
    print(f"{name:8} held-out perplexity {perplexity:.0f}")
assert setup.is_tiny or after["masked_lm_loss"] < before["masked_lm_loss"]

# %% [markdown]
# ## 3. Words of the domain
#
# `build_vocabulary --fill_unused` and `bert_tf.add_words` put words of the domain into
# the vocabulary, so that they are one piece instead of many.

# %%
_, tokenizer = bert_tf.from_pretrained(setup.path("adapted"), head="encoder")
[tokenizer.tokenize(word) for word in ("sourdough", "mulching", "thunderstorm")]

# %%
print(setup.last_run_on())
