"""A small data set that a tiny model learns in seconds, and options to train on it."""

import pytest

from bert_tf.tasks.retrieval import options
from tests.tasks.retrieval import pairs


@pytest.fixture(scope="session")
def passages(tmp_path_factory):
    """Folder with train.jsonl (16 rows), dev.jsonl (8), corpus.txt and queries.txt."""
    folder = tmp_path_factory.mktemp("passages")
    pairs.write(folder)
    return folder


@pytest.fixture(scope="session")
def retrieval_options(golden, quick_config, passages):
    """Returns a function that creates options; keywords replace the defaults."""

    def create(output_dir, **values):
        defaults = {
            "output_dir": str(output_dir),
            "bert_config_file": quick_config,
            "vocab_file": str(golden / "vocab.txt"),
            "train_file": str(passages / "train.jsonl"),
            "eval_file": str(passages / "dev.jsonl"),
            "corpus_file": str(passages / "corpus.txt"),
            "predict_file": str(passages / "queries.txt"),
            "do_train": True,
            "max_query_length": 8,
            "max_seq_length": 16,
            "train_batch_size": 8,
            "learning_rate": 1e-2,
            "num_train_epochs": 20.0,
            "recall_at": (1, 3),
        }
        return options.RunRetrievalOptions(**defaults | values)

    return create


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes text, or a list as JSON lines, to a file."""

    def write_file(name, content):
        if isinstance(content, list):
            content = pairs.json_lines(content)
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write_file
