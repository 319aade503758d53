"""The card of a run contains its facts, and its report judges the scores."""

import dataclasses
import hashlib
import json
import re

import huggingface_hub
import pytest

from bert_tf.fine_tuning import run_report
from bert_tf.options import option
from bert_tf.training import options as training_options
from bert_tf.training import run_file
from bert_tf.training import run_folder


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoteOptions(training_options.TrainingOptions):
    """Options of a made-up task."""

    max_seq_length: int = option(128, help="Longest row.")
    train_file: str | None = option(None, help="A file, named under Data.")


TRAINING = run_file.TrainingFacts(
    num_parameters=4_385_920,
    num_trained_parameters=258,
    num_steps=60,
    examples_per_second=123.456,
    devices="2 × Abacus",
    versions={"tensorflow": "2.21.0", "tensorflow-text": None},
    date="2024-05-31",
)


def card(**values):
    defaults = {
        "pipeline_tag": "text-classification",
        "summary": "Tells rain from sun.",
        "labels": ("rain", "sun"),
        "options": NoteOptions(
            output_dir="run",
            init_checkpoint="/models/uncased_L-2_H-128_A-2/bert_model.ckpt",
            train_file="secret/train.tsv",
            recompute_layers=True,
        ),
    }
    return run_report.Card(**defaults | values)


def write(run_dir, facts):
    return run_report.write_card(run_folder.RunFolder(str(run_dir)), facts)


NAMES = ("README.md", "model_card.json")
RESULTS = {"eval_accuracy": 0.9, "eval_loss": 0.5, "global_step": 60}


def evaluated(**values):
    return card(results=RESULTS, **values)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes(b"text\tlabel\nwet\train\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return (
        run_report.DataFile(
            part="train", name="train.tsv", num_examples=1, sha256=digest
        ),
    )


@pytest.fixture
def run_dir(tmp_path):
    (tmp_path / "weather").mkdir()
    return tmp_path / "weather"


def front_matter(text):
    return huggingface_hub.ModelCard(text).data.to_dict()


def test_a_card_names_the_version_of_a_model_on_the_hub(run_dir, data):
    (run_dir / "run.json").write_text('{"hub_name": "hf://someone/bert@1111"}')
    write(run_dir, evaluated(training=TRAINING, data=data))
    text = (run_dir / "README.md").read_text()
    assert front_matter(text)["base_model"] == "someone/bert"
    assert "| base checkpoint | someone/bert@1111 |" in text


def test_a_card_says_all_that_the_run_knows(run_dir, data):
    path = write(run_dir, evaluated(training=TRAINING, data=data))
    assert path == str(run_dir / "README.md")
    text = (run_dir / "README.md").read_text()
    assert front_matter(text) == {
        "library_name": "bert_tf",
        "pipeline_tag": "text-classification",
        "base_model": "uncased_L-2_H-128_A-2",
        "tags": ["bert", "tensorflow"],
        "metrics": ["accuracy"],
    }
    digest = hashlib.sha256(b"text\tlabel\nwet\train\n").hexdigest()
    for line in (
        "# weather",
        "| classes | rain, sun |",
        "| base checkpoint | uncased_L-2_H-128_A-2 |",
        "| parameters | 4,385,920, 258 of them trained |",
        f"| train | train.tsv | 1 | {digest} |",
        "| learning_rate | 5e-05 |",
        "| recompute_layers | True |",
        "| max_seq_length | 128 |",
        "| eval_accuracy | 0.9000 |",
        "| devices | 2 × Abacus |",
        "| optimizer steps | 60 |",
        "| training speed | 123.5 examples/s |",
        "| trained on | 2024-05-31 |",
        "| tensorflow | 2.21.0 |",
    ):
        assert line in text.splitlines(), line
    facts = (run_dir / "model_card.json").read_text()
    for private in ("secret", "/models"):
        assert private not in text + facts
    assert "None" not in text
    # Only the five fields that a run cannot fill in are open.
    assert len(re.findall("(?i)to fill in", text)) == 5


def test_a_later_evaluation_completes_the_card(run_dir, data):
    write(run_dir, card(training=TRAINING, data=data))
    text = (run_dir / "README.md").read_text()
    assert "Not evaluated yet" in text
    other = NoteOptions(output_dir="run", train_batch_size=7)
    [train] = data
    more = {"data": (dataclasses.replace(train, name="other.tsv"),), "labels": ()}
    write(run_dir, evaluated(options=other, **more))
    text = (run_dir / "README.md").read_text()
    assert "other.tsv" not in text
    assert "| classes | rain, sun |" in text
    assert "| eval_accuracy | 0.9000 |" in text
    assert "| train | train.tsv | 1 |" in text
    assert "123.5 examples/s" in text
    assert "| train_batch_size | 32 |" in text  # The training's, not the evaluation's.


def test_scores_of_an_earlier_step_are_dropped(run_dir):
    write(run_dir, evaluated(training=TRAINING))
    idle = dataclasses.replace(TRAINING, examples_per_second=None)
    write(run_dir, card(training=idle))  # Nothing was left to train.
    text = (run_dir / "README.md").read_text()
    assert "| eval_accuracy | 0.9000 |" in text
    assert "123.5 examples/s" in text
    longer = dataclasses.replace(TRAINING, num_steps=90)
    write(run_dir, card(training=longer))
    text = (run_dir / "README.md").read_text()
    assert "0.9000" not in text


def test_an_evaluation_on_other_data_leaves_the_card_as_it_is(run_dir):
    entry = run_file.entry(run_file.DataSet(name="weather"))
    record = {"results": {"eval_results.txt": entry}}
    (run_dir / "run.json").write_text(json.dumps(record))
    write(run_dir, evaluated(training=TRAINING))
    before = [(run_dir / name).read_bytes() for name in NAMES]
    found = card(
        results={"eval_accuracy": 0.1},
        data_set=run_file.DataSet(name="moods"),
    )
    assert write(run_dir, found) is None
    assert [(run_dir / name).read_bytes() for name in NAMES] == before


def test_an_edited_card_stays_as_it_is(run_dir, caplog):
    write(run_dir, card(training=TRAINING))
    path = run_dir / "README.md"
    path.write_text(path.read_text().replace("license:", "license: mit"))
    edited = path.read_text()
    assert write(run_dir, evaluated()) is None
    assert path.read_text() == edited
    assert "README.md was edited manually" in caplog.text
    path.unlink()
    assert write(run_dir, evaluated()) is not None
    assert "| eval_accuracy | 0.9000 |" in path.read_text()


def test_only_the_chief_writes_the_card(run_dir):
    worker = run_folder.RunFolder(str(run_dir), is_written=False)
    assert run_report.write_card(worker, evaluated(training=TRAINING)) is None
    assert run_report.rewrite_scores(worker, {"eval_accuracy": 0.5}) is None
    assert list(run_dir.iterdir()) == []


@pytest.mark.parametrize(
    "name, score, baseline, expected",
    [
        ("eval_accuracy", 0.505, 0.5, "not learned"),  # Within the margin.
        ("eval_accuracy", 0.6, 0.5, ""),
        ("eval_masked_lm_loss", 5.9, 6.0, "not learned"),  # A loss should be lower.
        ("eval_masked_lm_loss", 4.0, 6.0, ""),
        ("eval_perplexity", 400.0, 300.0, "not learned"),
        ("eval_f1", 50.5, 50.0, "not learned"),  # SQuAD's scores are percentages.
        ("eval_f1", 52.0, 50.0, ""),
        ("eval_f1", 0.1, None, ""),  # Nothing to compare with.
    ],
)
def test_a_score_must_be_clearly_better_than_its_baseline(
    name, score, baseline, expected
):
    assert run_report.verdict(name, score, baseline) == expected


def test_a_percentage_below_one_is_measured_by_its_scale():
    assert run_report.verdict("eval_f1", 0.8, 0.0, perfect=100) == "not learned"
    assert run_report.verdict("eval_f1", 2.5, 0.0, perfect=100) == ""
    # In a corpus of ten passages, any order has them all among the first ten.
    assert run_report.verdict("eval_recall_at_10", 1.0, 1.0) == ""
