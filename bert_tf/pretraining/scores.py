"""Scores of pretraining, under the release's names, and their baselines."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_tf.data import record_checks
from bert_tf.data import schema as schema_module
from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.pretraining import examples as pretraining_examples
from bert_tf.pretraining import text_examples
from bert_tf.training import plots
from bert_tf.training import run_file
from bert_tf.training import run_folder

UNIGRAM = "unigram frequencies"
MAX_RECORDS = 2000
_IDS, _WEIGHTS, _LABELS = "masked_lm_ids", "masked_lm_weights", "next_sentence_labels"

# The scores that run_pretraining.py printed (2018), and those of left-to-right models.
RELEASE_SCORES = (
    "loss",
    "masked_lm_accuracy",
    "masked_lm_loss",
    "next_piece_accuracy",
    "next_piece_loss",
    "next_sentence_accuracy",
    "next_sentence_loss",
)


def release_scores(means: Mapping[str, float], global_step: int) -> dict[str, float]:
    """Returns the numbers of eval_results.txt, from those of `Trainer.evaluate`."""
    scores = {name: means[name] for name in RELEASE_SCORES if name in means}
    return scores | {"global_step": global_step}


def names_of(
    config: config_module.BertConfig, schema: schema_module.Schema
) -> list[str]:
    """Returns the names of the scores that `evaluation_scores` returns."""
    tasks = ["next_piece"] if config.is_causal else ["masked_lm"]
    if _LABELS in schema:
        tasks.append("next_sentence")
    names = [f"{task}_{kind}" for task in tasks for kind in ("loss", "accuracy")]
    return [f"eval_{name}" for name in ("loss", *names, "perplexity")]


def evaluation_scores(means: Mapping[str, float]) -> dict[str, float]:
    """Returns the scores of an evaluation during training, each named eval_NAME.

    The perplexity is that of the masked words, or of the next pieces.
    """
    scores = {f"eval_{name}": value for name, value in means.items()}
    scores["eval_perplexity"] = perplexity(means[words_loss(means)])
    return scores


def words_loss(means: Mapping[str, float]) -> str:
    """Returns the name of the loss of the masked words, or of the next pieces."""
    return "masked_lm_loss" if "masked_lm_loss" in means else "next_piece_loss"


def perplexity(loss: float) -> float:
    """Returns exp(loss), or infinity if that exceeds the largest float."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def write_baselines(
    folder: run_folder.RunFolder,
    examples: pretraining_examples.Examples,
    eval_examples: pretraining_examples.Examples,
    *,
    vocab_size: int,
    data_set: run_file.DataSet,
) -> None:
    """Writes the baselines of an evaluation into plot_data.json.

    Text has none: counting its words would mean reading all of it. Nothing is read if
    this process does not write the folder, or if the data set is not the run's own.
    """
    text = text_examples.TextExamples
    if isinstance(examples, text) or isinstance(eval_examples, text):
        return
    if plots.is_written(folder, data_set):
        baselines = record_baselines(examples, eval_examples, vocab_size)
        plots.update_data(folder, {"baselines": baselines}, data_set)


def record_baselines(
    records: tfrecord.RecordFiles, eval_records: tfrecord.RecordFiles, vocab_size: int
) -> dict[str, dict[str, Any]]:
    """Returns the baselines of an evaluation; see `training.plots`.

    The masked words are predicted from the frequencies of the masked word pieces of the
    training records, with one added to each count, and next sentences from the
    frequencies of the two labels. Up to `MAX_RECORDS` records of each set are read,
    spread evenly over it.

    Args:
        records: to train on.
        eval_records: to evaluate on.
        vocab_size: of the model.

    Returns:
        Entries by name of the score.
    """
    trained, evaluated = _read(records), _read(eval_records)
    counts = np.bincount(trained[_IDS], minlength=vocab_size) + 1.0  # [V]
    frequencies = counts / np.sum(counts)
    loss = -float(np.mean(np.log(frequencies[evaluated[_IDS]])))
    accuracy = float(np.mean(evaluated[_IDS] == np.argmax(frequencies)))
    baselines = {
        "eval_masked_lm_loss": (UNIGRAM, loss),
        "eval_masked_lm_accuracy": (UNIGRAM, accuracy),
        "eval_perplexity": (UNIGRAM, perplexity(loss)),
    }
    if _LABELS in evaluated:
        share = float(np.mean(evaluated[_LABELS]))
        baselines["eval_next_sentence_accuracy"] = (
            plots.MAJORITY_CLASS,
            max(share, 1 - share),
        )
        baselines["eval_next_sentence_loss"] = (plots.MAJORITY_CLASS, _entropy(share))
        baselines["eval_loss"] = ("both baselines", loss + _entropy(share))
    return {name: plots.baseline(*pair) for name, pair in baselines.items()}


def _read(records) -> Mapping[str, np.ndarray]:
    """Returns the masked ids and the labels of records, each as one array."""
    sample = record_checks.spread_sample(records, MAX_RECORDS)
    ids, labels = [], []
    for index, data in zip(sample.tolist(), records.read(sample), strict=True):
        record = records.decode(data, index)
        ids.append(record[_IDS][record[_WEIGHTS] > 0])
        labels.append(record.get(_LABELS, ()))
    columns = {_IDS: np.concatenate(ids)}
    if _LABELS in records.schema:
        columns[_LABELS] = np.concatenate(labels)
    return columns


def _entropy(share):
    return -sum(p * math.log(p) for p in (share, 1 - share) if p)
