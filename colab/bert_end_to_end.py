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
# # BERT, end to end
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/bert_tf/blob/main/colab/bert_end_to_end.ipynb)
#
# This notebook starts with raw text and ends with a served classifier. On the way it
# learns a vocabulary, creates masked examples, pretrains an encoder, fills masks,
# fine-tunes a classifier and exports a SavedModel. The text comes with the package, the
# model is small, and everything runs in minutes on a CPU.

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

setup = notebook.prepare("bert_end_to_end", RUN_DIR)
print(setup)  # The device, the number format and the folder.

# %%
train_text = notebook.sample_file("corpus.txt")
heldout_text = notebook.sample_file("corpus_heldout.txt")
num_steps = 4 if setup.is_tiny else 2000
num_passes = 1 if setup.is_tiny else 100

# %% [markdown]
# ## 1. The text
#
# The text has one sentence per line and a blank line between documents.

# %%
with open(train_text, encoding="utf-8") as file:
    print(file.read()[:700])

# %% [markdown]
# ## 2. The vocabulary
#
# A frequent word is one piece, and a rare word is several. Pieces that continue a word
# begin with `##` (section 3 of [the paper](https://arxiv.org/abs/1810.04805)).

# %%
from bert_tf.tokenization import learning

vocabulary = learning.learn_vocabulary(
    [train_text], vocab_size=2000, do_lower_case=True
)
vocab_file = setup.path("vocab.txt")
vocabulary.save(vocab_file)

tokenizer = bert_tf.FullTokenizer(vocab_file, do_lower_case=True)
pieces = tokenizer.tokenize("The baker kneaded the sourdough.")
print(len(vocabulary), "pieces;", pieces)
print(tokenizer.convert_tokens_to_ids(pieces))

# %% [markdown]
# The same tokenizer exists as TensorFlow operations and gives the same ids. The
# SavedModel at the end contains it.

# %%
in_graph = bert_tf.InGraphTokenizer(vocab_file, do_lower_case=True)
in_graph.tokenize(["The baker kneaded the sourdough."]).to_list()

# %% [markdown]
# ## 3. Examples
#
# An example has two segments, `[CLS] A [SEP] B [SEP]`. In half of the examples, B comes
# from another document, and the model has to predict whether it does (section 3.1 of
# the paper, task 2). If A ends with the last sentence of its document, B always comes
# from another one, so the share is above one half. The model also has to predict 15% of
# the pieces, most of which are replaced by `[MASK]` (task 1, and appendix A.1).

# %%
from bert_tf.data import tfrecord
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import workflow as pretraining_data_workflow

lengths = {"max_seq_length": 64, "max_predictions_per_seq": 10}


def create_examples(text_file, name, dupe_factor):
    """Creates masked examples of a text. Returns the TFRecord file."""
    record_file = setup.path(f"{name}.tfrecord")
    options = pretraining_data_options.CreatePretrainingDataOptions(
        input_file=text_file,
        output_file=record_file,
        vocab_file=vocab_file,
        dupe_factor=dupe_factor,
        **lengths,
    )
    print(pretraining_data_workflow.create_data(options))
    return record_file


train_records = create_examples(train_text, "train", num_passes)
heldout_records = create_examples(heldout_text, "heldout", -(-num_passes // 20))

# %%
example = tfrecord.RecordFiles([train_records]).decoded(0)
tokens = tokenizer.convert_ids_to_tokens([int(i) for i in example["input_ids"]])
hidden = tokenizer.convert_ids_to_tokens([int(i) for i in example["masked_lm_ids"]])
print(" ".join(token for token in tokens if token != "[PAD]"))
print("hidden:", " ".join(token for token in hidden if token != "[PAD]"))

# %% [markdown]
# ## 4. Pretraining
#
# The configuration is a `bert_config.json` as in the 2018 release. The learning rate
# rises over the first steps and then falls to 0 (appendix A.2). The run folder contains
# checkpoints in the format of the release and all logged numbers.

# %%
from bert_tf import files
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import workflow as pretraining_workflow

config = bert_tf.BertConfig.of_size(
    "tiny", vocab_size=len(vocabulary), max_position_embeddings=128
)
config_file = setup.path("bert_config.json")
with files.open_file(config_file, "w") as file:
    file.write(config.to_json_string())

options = pretraining_options.RunPretrainingOptions(
    input_file=train_records,
    eval_input_file=heldout_records,
    bert_config_file=config_file,
    vocab_file=vocab_file,
    output_dir=setup.path("pretraining"),
    do_train=True,
    do_eval=True,
    train_batch_size=32,
    eval_batch_size=64,
    max_eval_steps=0,
    learning_rate=1e-3,
    num_train_steps=num_steps,
    num_warmup_steps=num_steps // 10,
    eval_every_steps=max(1, num_steps // 10),
    **lengths,
)
pretraining_workflow.train(options)

# %% [markdown]
# The scores are those on held-out text. The baseline predicts every masked word from
# the frequencies of the word pieces alone.

# %%
# %matplotlib inline
from bert_tf.training import plots

pretraining_scores = pretraining_workflow.evaluate(options)
baselines = plots.read_data(options.output_dir)["baselines"]
for name in ("masked_lm_loss", "masked_lm_accuracy"):
    baseline = baselines[f"eval_{name}"]["value"]
    print(f"{name}: {pretraining_scores[name]:.3f}, by frequency {baseline:.3f}")
assert setup.is_tiny or pretraining_scores["masked_lm_accuracy"] > 0.15
assert setup.is_tiny or (
    pretraining_scores["masked_lm_loss"] < baselines["eval_masked_lm_loss"]["value"]
)

# %%
plots.curves({"pretraining": options.output_dir})

# %% [markdown]
# ## 5. Filling masks
#
# After two minutes on 76 kB of text, a model knows little more than which words are
# frequent. The small model in the package, `bert-tf-mini`, has read 89 novels.

# %%
SENTENCES = [
    "She opened the [MASK] and went into the garden.",
    "They sat by the fire and drank a cup of [MASK].",
    "There was not a cloud in the blue [MASK].",
]
for checkpoint in (options.output_dir, "bert-tf-mini"):
    print(os.path.basename(checkpoint))
    answers = bert_tf.fill_masks(checkpoint, SENTENCES, top_k=3)
    for text, answer in zip(SENTENCES, answers, strict=True):
        (likeliest,) = answer["masks"]
        found = ", ".join(f"{x['token']} {x['probability']:.2f}" for x in likeliest)
        print(f"    {text} {found}")

# %% [markdown]
# ## 6. The encoder's outputs
#
# The pretrained weights also load into the encoder alone. As in the paper, it returns
# one vector per piece and one for the whole text.

# %%
model = bert_tf.BertModel(config, name="bert")
print(bert_tf.load_checkpoint(model, options.output_dir))
features = bert_tf.pack(tokenizer, ["The cat sat.", "It rained."], max_seq_length=16)
outputs = model(features)
outputs["sequence_output"].shape, outputs["pooled_output"].shape

# %% [markdown]
# ## 7. Fine-tuning
#
# The data set has a few hundred sentences with their topics. One new layer reads the
# vector of `[CLS]`, and all weights are trained (sections 3.2 and 4.1). We fine-tune
# with the same settings from `bert-tf-mini` and from random weights, and measure
# accuracy on unseen sentences. The learning rate is chosen for the size of the model.

# %%
test_file = notebook.sample_file("topics_test.tsv")


def fine_tune(name, **start):
    """Trains a topic classifier. Returns its scores."""
    model = bert_tf.fine_tune.classify(
        notebook.sample_file("topics_train.tsv"),
        output_dir=setup.path(name),
        validation=test_file,
        max_seq_length=32,
        train_batch_size=16,
        num_train_epochs=1 if setup.is_tiny else 5,
        **start,
    )
    return model.scores


scores = {
    "random weights": fine_tune(
        "random", vocab_file=vocab_file, bert_config_file=config_file
    ),
    "pretrained": fine_tune("topics"),
}

# %%
import matplotlib.figure

accuracies = {"majority class": 0.25}  # The four topics are equally frequent.
accuracies |= {name: one["eval_accuracy"] for name, one in scores.items()}
print({name: round(value, 3) for name, value in accuracies.items()})
figure = matplotlib.figure.Figure(figsize=(5, 2), layout="constrained")
axes = figure.subplots()
axes.barh(list(accuracies), list(accuracies.values()))
axes.set(xlim=(0, 1), title="accuracy on unseen sentences")
# Few test sentences: on another processor, the scores differ by some points.
assert setup.is_tiny or accuracies["pretrained"] > 0.7
figure

# %% [markdown]
# ## 8. Predictions
#
# Predicting needs only the run folder.

# %%
sentences = [sentence for sentence, _ in notebook.labelled_rows(test_file)[:4]]
predictions_of_run = bert_tf.load(setup.path("topics")).predict(sentences)
predictions_of_run

# %% [markdown]
# ## 9. Serving
#
# The SavedModel takes strings and returns topic names. It needs TensorFlow and the
# operations of TensorFlow Text, but not this package.

# %%
from bert_tf.serving import client
from bert_tf.serving import export

export_dir = export.export_saved_model(
    setup.path("topics"), setup.path("exported", "1")
)
served = client.open_saved_model(export_dir).ask(text=sentences)
for one, predicted in zip(served, predictions_of_run, strict=True):
    assert one["label"] == predicted["label"]
served

# %%
print(setup.last_run_on())
