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
# # Pretraining on a TPU
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/pretraining_on_tpu.ipynb)
#
# This notebook shows the whole of BERT's pretraining, from text in a bucket to a
# checkpoint in the bucket. On a TPU, every step is one compiled program for all cores.
# Without a TPU, the same cells run on a GPU or a CPU, with a smaller model. The
# notebook follows appendix A.2 of [the paper](https://arxiv.org/abs/1810.04805).
#
# Choose a TPU under *Runtime > Change runtime type*. Colab's TPU runtime has no
# TensorFlow: the first cell installs 2.20, the last version with TPU wheels. If an
# import fails after that, restart the runtime and run the cell again. This notebook has
# not been run on a TPU.

# %%
import functools
import glob
import importlib.util
import os

from IPython import get_ipython

# Hide TensorFlow's start-up messages.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"

if importlib.util.find_spec("bert_tf") is None:  # As on Colab.
    has_tpu = any(map(glob.glob, ("/dev/accel[0-9]*", "/dev/vfio/[0-9]*")))
    is_checkout = os.path.exists("../setup.py")
    install = functools.partial(get_ipython().run_line_magic, "pip")
    if has_tpu:
        # tensorflow-tpu replaces TensorFlow, which the others would install.
        install(
            "install --quiet tensorflow-tpu==2.20.0 scipy safetensors tqdm "
            "google-crc32c filelock matplotlib tokenizers"
        )
        package = ".." if is_checkout else "bert_tf==0.1.0"
        install(f"install --quiet --no-deps tensorflow-text==2.20.1 '{package}'")
    else:
        extras = "[plots,vocabulary]"
        package = f"..{extras}" if is_checkout else f"bert_tf{extras}==0.1.0"
        install(f"install --quiet '{package}'")

import bert_tf
from bert_tf import notebook

# All files are in this folder. Choose one that outlives the machine, and nothing is
# lost when Colab disconnects: run the cells again, and a training resumes.
# Examples: "/content/drive/MyDrive/bert_tf", "gs://your-bucket/bert_tf".
RUN_DIR = os.environ.get("RUN_DIR")

setup = notebook.prepare("pretraining_on_tpu", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %% [markdown]
# ## 1. Data in a bucket
#
# A TPU reads its data from Google Cloud Storage. Set `RUN_DIR =
# "gs://your-bucket/bert"` above, and everything below is written there: shards,
# checkpoints and logs. A killed run resumes from the last checkpoint when its cell runs
# again, on any machine.
#
# With Colab, authenticate first:
#
#     from google.colab import auth
#
#     auth.authenticate_user()

# %%

import tensorflow as tf

from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from bert_tf.tokenization import learning

corpus = notebook.sample_file("corpus.txt")
vocab_file = setup.path("vocab.txt")
vocabulary = learning.learn_vocabulary([corpus], vocab_size=2000, do_lower_case=True)
vocabulary.save(vocab_file)
lengths = {"max_seq_length": 64, "max_predictions_per_seq": 10}
for name, path, copies in (
    ("train", corpus, 1 if setup.is_tiny else 20),
    ("heldout", notebook.sample_file("corpus_heldout.txt"), 1),
):
    print(
        pretraining_data_workflow.create_data(
            pretraining_data_options.CreatePretrainingDataOptions(
                input_file=path,
                output_file=setup.path(f"{name}.tfrecord"),
                vocab_file=vocab_file,
                dupe_factor=copies,
                **lengths,
            )
        )
    )

# %% [markdown]
# ## 2. What will it cost?
#
# "We train with batch size of 256 sequences for 1,000,000 steps. We use Adam with
# learning rate of 1e-4, L2 weight decay of 0.01, learning rate warmup over the first
# 10,000 steps, and linear decay" (appendix A.2). A dry run builds the model and
# estimates size, memory and work of this recipe, without training.

# %%
import dataclasses

from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow

config_file = setup.path("bert_config.json")
config = bert_tf.BertConfig.of_size(
    "tiny", vocab_size=len(vocabulary), max_position_embeddings=128
)
with tf.io.gfile.GFile(config_file, "w") as file:
    file.write(config.to_json_string())

num_steps = 4 if setup.is_tiny else 500
options = pretraining_options.RunPretrainingOptions(
    input_file=setup.path("train.tfrecord"),
    eval_input_file=setup.path("heldout.tfrecord"),
    bert_config_file=config_file,
    vocab_file=vocab_file,
    output_dir=setup.path("run"),
    do_train=True,
    do_eval=True,
    device=setup.device,
    dtype=setup.dtype,
    train_batch_size=8 if setup.is_tiny else 32,
    eval_batch_size=32,
    max_eval_steps=0,
    learning_rate=1e-3,
    num_train_steps=num_steps,
    num_warmup_steps=num_steps // 10,
    # On a TPU, the host hands over this many steps at a time.
    iterations_per_loop=100 if setup.device == "tpu" else 1,
    eval_every_steps=max(1, num_steps // 5),
    save_checkpoints_steps=max(1, num_steps // 5),
    **lengths,
)
paper = dataclasses.replace(
    options,
    dry_run=True,
    do_train=False,
    do_eval=False,
    learning_rate=1e-4,
    train_batch_size=256,
    num_train_steps=1_000_000,
    num_warmup_steps=10_000,
    eval_every_steps=0,
)
print(pretraining_workflow.run(paper))

# %% [markdown]
# ## 3. Training

# %%
pretraining_workflow.train(options)
scores = pretraining_workflow.evaluate(options)
scores

# %%
# %matplotlib inline
from bert_tf.training import plots

plots.curves({"run": options.output_dir})

# %% [markdown]
# The dotted lines are baselines without context: the frequencies of the word pieces,
# and the more frequent of "next sentence" and "random sentence". The loss of a model
# that uses context is below the first one; the few steps of this notebook only reach
# it.

# %%
unigram = plots.read_data(options.output_dir)["baselines"]["eval_masked_lm_loss"][
    "value"
]
print(f"masked-word loss {scores['masked_lm_loss']:.3f}, by frequency {unigram:.3f}")
assert setup.is_tiny or scores["masked_lm_loss"] < unigram + 0.1

# %% [markdown]
# ## 4. Speed
#
# Compare the speed with more replicas or a larger batch. Steps are fastest if the batch
# per core is a multiple of 8.

# %%
from bert_tf.training import run_folder

speeds = [
    line["examples_per_second"]
    for line in run_folder.RunFolder(options.output_dir).read_metrics()
    if "examples_per_second" in line
]
print(f"{sorted(speeds)[len(speeds) // 2]:.0f} examples per second (median)")

# %% [markdown]
# ## 5. Use it
#
# The run folder is a starting point for the other notebooks: use its path in place of
# `bert-tf-mini`.

# %%
bert_tf.fill_masks(options.output_dir, ["The rain stopped in the [MASK]."], top_k=3)

# %%
print(setup.last_run_on())
