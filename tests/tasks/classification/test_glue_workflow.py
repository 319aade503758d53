"""GLUE's tasks and XNLI from their folders to predictions."""

import dataclasses

import pytest

from bert_tf.fine_tuning import run as fine_tuning_run
from tests import runs

pytestmark = pytest.mark.slow

OWN = ("train_file", "eval_file", "predict_file")
MNLI_HEADER = "index\tsentence1\tsentence2\tgold_label\n"
MNLI_ROWS = "0\ta b\tb a\tentailment\n1\tc\td\tneutral\n2\te\tf\tcontradiction\n"


@pytest.fixture
def glue_options(weather_options):
    def create(output_dir, task_name, data_dir, **values):
        quick = {"train_batch_size": 2, "num_train_epochs": 1.0}
        given = {"task_name": task_name, "data_dir": str(data_dir), **quick}
        return weather_options(output_dir, **given | dict.fromkeys(OWN) | values)

    return create


@pytest.fixture
def mnli(tmp_path):
    folder = tmp_path / "MNLI"
    folder.mkdir()
    for name in ("train", "dev_matched", "dev_mismatched"):
        (folder / f"{name}.tsv").write_text(MNLI_HEADER + MNLI_ROWS)
    for name, text in (("test_matched", "a\tb"), ("test_mismatched", "c\td")):
        header = "index\tsentence1\tsentence2\n"
        (folder / f"{name}.tsv").write_text(f"{header}0\t{text}\n5\t{text}\n")
    return folder


def contents_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_mnli_is_scored_on_both_sets_and_its_model_answers_other_pairs(
    tmp_path, glue_options, mnli
):
    run_dir = tmp_path / "run"
    fine_tuning_run.run(
        glue_options(run_dir, "MNLI", mnli, do_eval=True, do_predict=True)
    )
    assert list(runs.scores(run_dir)) == [
        "eval_accuracy",
        "eval_accuracy_mismatched",
        "eval_loss",
        "eval_loss_mismatched",
        "global_step",
        "loss",
    ]
    labels = ("contradiction", "entailment", "neutral")
    for suffix in ("", "_mismatched"):
        lines = runs.json_lines(run_dir / f"predictions{suffix}.jsonl")
        ids = [f"test{suffix}-{number}" for number in (1, 2)]
        assert [line["id"] for line in lines] == ids
        assert {line["label"] for line in lines} <= set(labels)
        columns = (run_dir / f"test_results{suffix}.tsv").read_text().splitlines()
        assert [len(line.split("\t")) for line in columns] == [3, 3]
    card = (run_dir / "README.md").read_text()
    assert "| dev_mismatched | dev_mismatched.tsv | 3 |" in card

    of_mnli = contents_of(run_dir)
    (tmp_path / "diagnostic.tsv").write_text("index\tsentence1\tsentence2\n3\ta\tb\n")
    options = glue_options(run_dir, "MNLI", mnli, do_train=False, do_predict=True)
    table = {"predict_file": str(tmp_path / "diagnostic.tsv")}
    options = dataclasses.replace(options, task_name=None, data_dir=None, **table)
    fine_tuning_run.run(options)
    [answer] = runs.json_lines(run_dir / "predictions-diagnostic.jsonl")
    assert answer["label"] in labels
    # Files of MNLI, its card included, are as before.
    now = contents_of(run_dir)
    changed = {name for name in of_mnli if now[name] != of_mnli[name]}
    assert changed == set()

    with pytest.raises(ValueError, match="has the labels contradiction, entailment"):
        fine_tuning_run.run(
            glue_options(run_dir, "WNLI", mnli, do_train=False, do_eval=True)
        )


def test_a_model_trained_in_one_language_is_asked_in_others(tmp_path, glue_options):
    """Zero-shot: the training never saw the languages of the evaluation."""
    (tmp_path / "multinli.train.en.tsv").write_text(
        "premise\thypo\tlabel\na\tb\tneutral\nc\td\tcontradictory\n"
    )
    header = "language\tgold_label\tsentence1\tsentence2\n"
    rows = "de\tneutral\ta\tb\nfr\tneutral\tc\td\nfr\tentailment\te\tf\n"
    rows += "en\tneutral\ta\tb\n"
    for part in ("dev", "test"):
        (tmp_path / f"xnli.{part}.tsv").write_text(header + rows)
    run_dir = tmp_path / "run"

    def run(language, **flags):
        options = glue_options(run_dir, "XNLI", tmp_path, language=language, **flags)
        fine_tuning_run.run(options)

    run("en", do_eval=True)
    assert 'language: ["en"]' in (run_dir / "README.md").read_text()
    before = (run_dir / "eval_results.txt").read_text()

    run("de,fr", do_train=False, do_eval=True)
    assert (run_dir / "eval_results.txt").read_text() == before
    path = run_dir / "eval_results-xnli_de_fr.txt"
    first, *lines = path.read_text().splitlines()
    assert first == "data_set = xnli_de_fr"
    results = dict(line.split(" = ") for line in lines)
    german, french = (float(results[f"eval_accuracy_{one}"]) for one in ("de", "fr"))
    assert float(results["eval_accuracy"]) == (german + french) / 2
    assert 'language: ["en"]' in (run_dir / "README.md").read_text()

    run("fr", do_train=False, do_predict=True)
    [path] = run_dir.glob("test_results*.tsv")
    assert len(path.read_text().splitlines()) == 2
