"""The windows of the files that were recorded from run_squad.py of 2018."""

import json

import numpy as np
import pytest

from bert_tf.tasks.question_answering import examples as examples_module
from bert_tf.tasks.question_answering import features as features_module
from bert_tf.tokenization import full


@pytest.fixture(scope="session")
def golden_windows(shared):
    """Returns the windows of a recorded file, its arrays and its settings."""
    tokenizer = full.FullTokenizer(
        str(shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt")
    )

    def create(folder, kind):
        folder = shared / "golden" / folder
        settings = json.loads((folder / f"{kind}_settings.json").read_text())
        file = examples_module.read_squad(str(folder / f"{kind}.json"))
        questions = file.examples
        if kind == "train":
            questions = examples_module.training_examples(
                file, version_2_with_negative=settings["version_2_with_negative"]
            )
        names = ("max_seq_length", "doc_stride", "max_query_length")
        sizes = features_module.WindowSizes(**{name: settings[name] for name in names})
        windows = features_module.convert_examples_to_features(
            questions, tokenizer, sizes, is_training=kind == "train"
        )
        return windows, np.load(folder / f"{kind}_features.npz"), settings

    return create
