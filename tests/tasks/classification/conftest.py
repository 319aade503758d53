"""A task that a tiny model learns in seconds, and options to train on it."""

import pytest

from bert_tf.tasks.classification import options as classification_options

RAIN = ("wet", "rain", "cloud", "storm")
SUN = ("dry", "heat", "light", "noon")


def rows(words, label, count):
    return [
        (f"{words[i % 4]} and {words[(i + i // 4) % 4]}", label) for i in range(count)
    ]


def table(examples):
    lines = ["text\tlabel", *("\t".join(example) for example in examples)]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def weather(tmp_path_factory):
    """Folder with train.tsv (24 rows), dev.tsv (8) and test.tsv (5)."""
    folder = tmp_path_factory.mktemp("weather")
    rain, sun = rows(RAIN, "rain", 16), rows(SUN, "sun", 16)
    mixed = [row for pair in zip(rain, sun, strict=True) for row in pair]
    (folder / "train.tsv").write_text(table(mixed[:24]))
    (folder / "dev.tsv").write_text(table(mixed[24:]))
    (folder / "test.tsv").write_text("text\n" + "\n".join(t for t, _ in mixed[:5]))
    return folder


@pytest.fixture(scope="session")
def weather_options(golden, quick_config, weather):
    """Returns options for the weather task; keywords replace or add."""

    def create(output_dir, **values):
        defaults = {
            "output_dir": str(output_dir),
            "bert_config_file": quick_config,
            "vocab_file": str(golden / "vocab.txt"),
            "train_file": str(weather / "train.tsv"),
            "eval_file": str(weather / "dev.tsv"),
            "predict_file": str(weather / "test.tsv"),
            "do_train": True,
            "max_seq_length": 24,
            "train_batch_size": 8,
            "learning_rate": 1e-2,
            "num_train_epochs": 20.0,
        }
        return classification_options.RunClassifierOptions(**defaults | values)

    return create
