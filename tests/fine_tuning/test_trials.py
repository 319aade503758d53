"""A sweep runs all combinations once and keeps the best."""

import json
import pathlib

import pytest

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.fine_tuning import trials
from bert_tf.training import run_file
from tests import ring

TWO_SEEDS = "random_seed=1,2"
THREE_SEEDS = "random_seed=1,2,3"


@pytest.fixture
def create(tmp_path):
    def options(sweep=TWO_SEEDS, **values):
        defaults = {"output_dir": str(tmp_path), "do_train": True, "do_eval": True}
        return fine_tuning_options.TrialOptions(sweep=sweep, **defaults | values)

    return options


class Runner:
    """Replaces training: writes weights and returns a prescribed score."""

    def __init__(self, score_of):
        self.score_of = score_of
        self.done = []

    def __call__(self, options):
        score = self.score_of(options)
        if isinstance(score, BaseException):
            raise score
        self.done.append(options)
        write(options.output_dir, f"weights of {score}")
        return {"eval_loss": score, "eval_accuracy": 1 - score, "global_step": 3}


def write(folder, text):
    folder = pathlib.Path(folder)
    (folder / "best").mkdir(parents=True, exist_ok=True)
    for name in ("checkpoint", "model.ckpt-3.index", "best/checkpoint", "vocab.txt"):
        (folder / name).write_text(text)


def search(options, runner, data_sets=lambda options: {}):
    return trials.run(options, runner, data_sets=data_sets)


def test_a_sweep_is_every_combination(create, tmp_path):
    options = create(sweep="learning_rate=5e-5,3e-5; train_batch_size=16,32")
    made = [
        (t.name, t.options.learning_rate, t.options.train_batch_size)
        for t in options.trials()
    ]
    assert made == [
        ("learning_rate=5e-05,train_batch_size=16", 5e-5, 16),
        ("learning_rate=5e-05,train_batch_size=32", 5e-5, 32),
        ("learning_rate=3e-05,train_batch_size=16", 3e-5, 16),
        ("learning_rate=3e-05,train_batch_size=32", 3e-5, 32),
    ]
    folders = {t.options.output_dir for t in options.trials()}
    assert folders == {str(tmp_path / "trials" / name) for name, *_ in made}
    assert not any(t.options.sweep for t in options.trials())


def test_the_best_of_several_seeds_is_kept(create, tmp_path):
    runner = Runner(lambda options: {1: 0.5, 2: 0.25, 3: 0.75}[options.random_seed])
    report = search(create(THREE_SEEDS), runner)
    assert (tmp_path / "model.ckpt-3.index").read_text() == "weights of 0.25"
    assert (tmp_path / "best" / "checkpoint").read_text() == "weights of 0.25"
    assert list(tmp_path.glob("trials/*/model.ckpt-*")) == []
    assert (tmp_path / "sweep.tsv").read_text().splitlines() == [
        "random_seed\teval_accuracy\teval_loss",
        "1\t0.5\t0.5",
        "2\t0.75\t0.25",
        "3\t0.25\t0.75",
    ]
    assert "Kept the best of 3 runs: random_seed=2." in report
    assert "eval_accuracy = 0.7500" in report


@pytest.mark.parametrize(
    "scores, best",
    [
        ((float("nan"), 0.9, float("nan")), 2),  # NaN is never the best.
        ring.slow((float("nan"),) * 3, 1),  # If no run has a number, the first is kept.
    ],
)
def test_scores_that_are_not_numbers_are_null_and_not_the_best(create, scores, best):
    runner = Runner(lambda options: scores[options.random_seed - 1])
    options = create(THREE_SEEDS)
    report = search(options, runner)
    assert f"Kept the best of 3 runs: random_seed={best}." in report
    with open(f"{options.trials()[0].options.output_dir}/trial.json") as file:
        assert json.load(file)["results"]["eval_loss"] is None
    assert search(options, runner) == report
    assert len(runner.done) == 3


def test_a_run_that_is_best_by_its_record_needs_its_weights(create, tmp_path):
    runner = Runner(lambda options: options.random_seed / 10)
    search(create(), runner)
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.1"
    record = tmp_path / "trials" / "random_seed=2" / "trial.json"
    values = json.loads(record.read_text())
    values["results"]["eval_accuracy"] = 0.99
    record.write_text(json.dumps(values))
    # Its weights were removed.
    with pytest.raises(ValueError, match=r"remove its trial.json to train it again"):
        search(create(), runner)
    record.unlink()
    runner.score_of = lambda options: -1.0
    search(create(), runner)
    assert (tmp_path / "checkpoint").read_text() == "weights of -1.0"
    search(create(), Runner(lambda options: pytest.fail("trained again")))
    # Somebody removed the kept weights.
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(ValueError, match="seed=2 is now the best run, but its weights"):
        search(create(), runner)


def test_a_damaged_record_of_the_search_is_not_advised_to_be_removed(create, tmp_path):
    search(create(), Runner(lambda options: 0.5))
    (tmp_path / "trials" / "search.json").write_text("{")
    with pytest.raises(ValueError, match=r"search.json .*choose another --output_dir"):
        search(create(), Runner(lambda options: 0.5))


def test_a_killed_sweep_goes_on_without_what_is_finished(create, tmp_path):
    scores = {1e-5: 0.5, 2e-5: KeyboardInterrupt(), 3e-5: 0.75}
    options = create(sweep="learning_rate=1e-5,2e-5,3e-5")
    first = Runner(lambda options: scores[options.learning_rate])
    with pytest.raises(KeyboardInterrupt):
        search(options, first)
    assert (tmp_path / "sweep.tsv").read_text().splitlines() == [
        "learning_rate\teval_accuracy\teval_loss",
        "1e-05\t0.5\t0.5",
    ]
    scores[2e-5] = 0.25
    second = Runner(lambda options: scores[options.learning_rate])
    search(options, second)
    assert [o.learning_rate for o in second.done] == [2e-5, 3e-5]
    assert len((tmp_path / "sweep.tsv").read_text().splitlines()) == 4
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.25"

    third = Runner(lambda options: 0.9)
    search(options, third)
    assert third.done == []
    with pytest.raises(ValueError, match="search of other values: learning_rate=1e"):
        search(create(sweep="learning_rate=1e-5,4e-5"), third)


def test_a_search_that_is_killed_while_the_best_is_copied_goes_on(
    create, tmp_path, monkeypatch
):
    def copy_and_die(source, target):
        (tmp_path / "model.ckpt-3.index").write_text("half of the weights")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(trials, "_copy", copy_and_die)
        with pytest.raises(KeyboardInterrupt):
            search(create(), Runner(lambda options: 0.5))
    search(create(), Runner(lambda options: pytest.fail("trained again")))
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.5"


@pytest.mark.slow
def test_finished_runs_with_other_settings_are_not_taken(create):
    runner = Runner(lambda options: 0.5)
    search(create(), runner)
    with pytest.raises(ValueError, match=r"a finished run with train_batch_size 32, b"):
        search(create(train_batch_size=8), runner)
    # What does not change a run may differ.
    search(create(eval_batch_size=64), runner)
    assert len(runner.done) == 2


class DataRunner(Runner):
    """Records what the run was trained and evaluated on, like a training."""

    def __call__(self, options):
        results = super().__call__(options)
        folder = pathlib.Path(options.output_dir)
        train, dev = map(run_file.entry, data_sets_in(self.data_dir).values())
        record = {"training_data": train, "results": {"eval_results.txt": dev}}
        (folder / "run.json").write_text(json.dumps(record))
        return results


def data_sets_in(folder):
    parts = ("train", "dev")
    return {part: run_file.file_data_set(str(folder / f"{part}.csv")) for part in parts}


def write_data(folder, train="wet", dev="dry"):
    folder.mkdir(exist_ok=True)
    for name, text in (("train", train), ("dev", dev)):
        (folder / f"{name}.csv").write_text(text)
    return lambda options: data_sets_in(folder)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"train": "fog"}, r"with training data 'train', but .* 'train \(different"),
        ({"dev": "fog"}, r"with evaluation data 'dev', but .* 'dev \(different"),
    ],
)
@pytest.mark.parametrize("folder", [ring.slow("a"), "b"])
def test_finished_runs_on_other_data_are_not_taken(
    create, tmp_path, changed, message, folder
):
    runner = DataRunner(lambda options: 0.5)
    runner.data_dir = tmp_path / "a"
    search(create(), runner, write_data(tmp_path / "a"))
    # The same content in another folder is the same data.
    search(create(), runner, write_data(tmp_path / folder))
    assert len(runner.done) == 2
    # An edited file, or one of the same name in another folder.
    with pytest.raises(ValueError, match=message):
        data_sets = write_data(tmp_path / folder, **changed)
        search(create(), runner, data_sets)
    assert len(runner.done) == 2


def test_a_run_that_was_trained_alone_is_not_replaced(create, tmp_path):
    write(tmp_path, "weights of a week")
    with pytest.raises(ValueError, match="contains a single run, which"):
        search(create(), Runner(lambda options: 0.5))
    assert (tmp_path / "checkpoint").read_text() == "weights of a week"


@pytest.mark.parametrize(
    "values, message",
    [
        ({"sweep": "learning_rate"}, "--sweep: expected NAME=VALUE,VALUE"),
        ({"sweep": "speed=1,2"}, "--sweep: unknown flag .speed.; expected one"),
        ({"sweep": "dtype=float32;dtype=float32"}, "with different flag names"),
        ({"sweep": "output_dir=a,b"}, "output_dir cannot be varied"),
        ({"sweep": "learning_rate=1e-5,0.00001"}, "has the same value twice"),
        (
            {"sweep": "learning_rate=x"},
            "--sweep=learning_rate=x: --learning_rate: expec",
        ),
        ({"sweep": "train_batch_size=0"}, "--train_batch_size: expected at least 1"),
        ({"sweep": " ; "}, "--sweep is empty"),
        ({"do_eval": False}, "--sweep needs --do_train and"),
        ({"device": "multi_worker"}, "cannot be combined with --device=multi_worker"),
    ],
)
def test_what_is_no_search_is_refused(create, values, message):
    with pytest.raises(options_module.OptionError, match=message):
        create(**values)
