"""The model card of a classifier's run."""

import hashlib

import pytest

from bert_tf.fine_tuning import run as fine_tuning_run


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory, weather_options):
    folder = tmp_path_factory.mktemp("runs") / "weather"
    # Too few steps to learn it all: some answers are wrong.
    options = weather_options(
        folder,
        do_eval=True,
        num_train_epochs=1.0,
        learning_rate=1e-5,
        card_examples=True,
    )
    fine_tuning_run.run(options)
    return folder


def test_training_and_evaluating_write_a_model_card(run_dir, weather):
    lines = (run_dir / "README.md").read_text().splitlines()
    assert "pipeline_tag: text-classification" in lines
    assert "Assigns a text to one of 2 classes." in lines
    assert "| classes | rain, sun |" in lines
    for part, rows in (("train", 24), ("dev", 8)):
        digest = hashlib.sha256((weather / f"{part}.tsv").read_bytes()).hexdigest()
        assert f"| {part} | {part}.tsv | {rows} | {digest} |" in lines
    [accuracy] = [line for line in lines if line.startswith("| eval_accuracy |")]
    scores = (run_dir / "eval_results.txt").read_text().splitlines()
    expected = float(scores[0].removeprefix("eval_accuracy = "))
    assert accuracy == f"| eval_accuracy | {expected:.4f} |"
    num_wrong = round(8 * (1 - expected))
    [sentence] = [line for line in lines if "evaluated examples are wrong" in line]
    assert sentence.startswith(f"{num_wrong} of 8 ")
    ends = (" rain | sun |", " sun | rain |")
    assert sum(line.endswith(ends) for line in lines) == num_wrong
    assert "| optimizer steps | 3 |" in lines
    [speed] = [line for line in lines if line.startswith("| training speed |")]
    assert "examples/s" in speed
    [devices] = [line for line in lines if line.startswith("| devices |")]
    assert "CPU" in devices


def test_a_glue_task_names_itself_and_shows_pairs(tmp_path, weather_options):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for name, rows in (
        ("train", "1\t1\t2\ta b\tb a\n0\t1\t2\tc\td\n"),
        ("dev", "1\t1\t2\tone\tother\n0\t1\t2\tone\tother\n"),
    ):
        (tmp_path / f"{name}.tsv").write_text(header + rows)
    own = ("train_file", "eval_file", "predict_file")
    options = weather_options(
        tmp_path / "run",
        task_name="MRPC",
        data_dir=str(tmp_path),
        do_eval=True,
        card_examples=True,
        train_batch_size=2,
        num_train_epochs=1.0,
        **dict.fromkeys(own),
    )
    fine_tuning_run.run(options)
    text = (tmp_path / "run" / "README.md").read_text()
    assert "Assigns a pair of texts to one of 2 classes (MRPC)." in text
    assert "| one \\|\\|\\| other |" in text  # One of the two equal pairs is wrong.
    assert 'metrics: ["accuracy", "f1"]' in text
    assert 'language: ["en"]' in text
