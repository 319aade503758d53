"""Restarts and sweeps run all combinations once and keep the best."""

import json
import os
import pathlib
import re

import pytest

from bert_tf import options as options_module
from bert_tf.fine_tuning import trial_options
from bert_tf.fine_tuning import trials
from bert_tf.training import result_files


@pytest.fixture
def create(tmp_path):
    def options(**values):
        defaults = {"output_dir": str(tmp_path), "do_train": True, "do_eval": True}
        return trial_options.TrialOptions(**defaults | values)

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


def search(options, runner, data_sets=lambda options: {}, **values):
    return trials.run(options, runner, data_sets=data_sets, **values)


def weights_below(folder):
    return sorted(p.parent.name for p in folder.glob("trials/*/model.ckpt-*"))


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
    assert not any(t.options.has_trials() for t in options.trials())


def test_restarts_have_seeds_that_follow_one_another(create):
    options = create(num_restarts=3, random_seed=7, sweep="learning_rate=1e-5")
    assert [t.changed for t in options.trials()] == [
        {"learning_rate": 1e-5, "random_seed": seed} for seed in (7, 8, 9)
    ]


def test_the_best_of_several_seeds_is_kept_with_mean_and_spread(create, tmp_path):
    runner = Runner(lambda options: {1: 0.5, 2: 0.25, 3: 0.75}[options.random_seed])
    options = create(num_restarts=3, random_seed=1)
    report = search(options, runner)
    assert (tmp_path / "model.ckpt-3.index").read_text() == "weights of 0.25"
    assert (tmp_path / "best" / "checkpoint").read_text() == "weights of 0.25"
    assert weights_below(tmp_path) == []
    assert (tmp_path / "restarts.tsv").read_text().splitlines() == [
        "random_seed\teval_accuracy\teval_loss",
        "1\t0.5\t0.5",
        "2\t0.75\t0.25",
        "3\t0.25\t0.75",
        "mean\t0.5\t0.5",
        "standard_deviation\t0.25\t0.25",
    ]
    assert "Kept the best of 3 runs: random_seed=2." in report
    assert "eval_accuracy = 0.5000 ± 0.2500 over 3 runs" in report


def test_best_metric_says_which_is_the_best(create, tmp_path):
    # The worst loss has the best accuracy here.
    def score(options):
        return {1: 0.5, 2: 0.25}[options.random_seed]

    class Other(Runner):
        def __call__(self, options):
            found = super().__call__(options)
            return found | {"eval_accuracy": found["eval_loss"]}

    options = create(num_restarts=2, random_seed=1, best_metric="eval_accuracy")
    search(options, Other(score))
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.5"
    with pytest.raises(ValueError, match="--best_metric=eval_f1 is not among the scor"):
        search(create(num_restarts=2, best_metric="eval_f1"), Other(lambda o: 1.0))


def test_a_run_without_a_number_is_never_the_best(create, tmp_path):
    nan = float("nan")
    runner = Runner(lambda options: {1: nan, 2: 0.9, 3: nan}[options.random_seed])
    search(create(num_restarts=3, random_seed=1), runner)
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.9"


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
    # More values: known results are kept.
    search(create(sweep="learning_rate=1e-5,2e-5,3e-5,4e-5"), third)
    assert [o.learning_rate for o in third.done] == [4e-5]
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.25"


def test_a_search_that_is_killed_while_the_best_is_copied_goes_on(
    create, tmp_path, monkeypatch
):
    def copy_and_die(source, target):
        write(target, "half of the weights")
        raise KeyboardInterrupt

    options = create(num_restarts=2)
    with monkeypatch.context() as patched:
        patched.setattr(trials, "_copy", copy_and_die)
        with pytest.raises(KeyboardInterrupt):
            search(options, Runner(lambda options: 0.5))
    search(options, Runner(lambda options: pytest.fail("trained again")))
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.5"


def test_results_of_an_earlier_best_run_are_removed(create, tmp_path):
    runner = Runner(lambda options: 1 / options.random_seed)
    more = {"more_results": {"predictions.jsonl": ["test_results.tsv"]}}
    search(create(num_restarts=2, random_seed=1), runner, **more)
    stale = ("eval_results-ax.txt", "predictions.jsonl", "predictions-ax-0a.jsonl")
    stale += ("test_results.tsv", "test_results-ax-0a.tsv")
    for name in (*stale, "notes.txt"):
        (tmp_path / name).write_text("of the first best run")
    # The best run remains the same, and so do its predictions.
    search(create(num_restarts=2, random_seed=1), runner, **more)
    assert all((tmp_path / name).exists() for name in stale)
    search(create(num_restarts=3, random_seed=1), runner, **more)
    assert (tmp_path / "checkpoint").read_text() == f"weights of {1 / 3}"
    assert not any((tmp_path / name).exists() for name in stale)
    assert (tmp_path / "notes.txt").exists()


def test_another_score_may_choose_a_run_whose_weights_are_gone(create, tmp_path):
    runner = Runner(lambda options: options.random_seed / 10)
    search(create(num_restarts=2, random_seed=1), runner)
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.1"

    record = tmp_path / "trials" / "random_seed=2" / "trial.json"
    values = json.loads(record.read_text())
    values["results"]["eval_accuracy"] = 0.99
    record.write_text(json.dumps(values))
    options = create(num_restarts=2, random_seed=1, best_metric="eval_accuracy")
    search(options, runner)
    assert [o.random_seed for o in runner.done] == [1, 2, 2]  # Trained once more.
    assert (tmp_path / "checkpoint").read_text() == "weights of 0.2"


def test_finished_runs_with_other_settings_are_not_taken(create):
    runner = Runner(lambda options: 0.5)
    search(create(num_restarts=2), runner)
    with pytest.raises(ValueError, match=r"a finished run with train_batch_size 32, b"):
        search(create(num_restarts=2, train_batch_size=8), runner)
    # What does not change a run may differ.
    search(create(num_restarts=2, eval_batch_size=64), runner)
    assert len(runner.done) == 2


@pytest.mark.parametrize(
    "name, content",
    [
        ("trial.json", []),
        ("trial.json", {"settings": {}, "results": {"eval_loss": "low"}}),
        ("trial.json", {"settings": {"train_file": {}}, "results": {}}),
        ("trial.json", {"settings": {}, "results": {"eval_loss": 0.5}}),  # No accuracy.
        ("run.json", {"training_data": "wet"}),
        ("run.json", {"results": {"eval_results.txt": "dry"}}),
        ("../kept.json", {"kept": ["random_seed=1"]}),
    ],
)
def test_damaged_records_are_named(create, name, content):
    runner = Runner(lambda options: 0.5)
    options = create(num_restarts=2, random_seed=1)
    search(options, runner)
    trial = options.trials()[1]
    path = os.path.join(trial.options.output_dir, name)
    with open(path, "w") as file:
        json.dump(content, file)
    with pytest.raises(ValueError, match=re.escape(os.path.basename(name))):
        search(options, runner)


def test_scores_that_are_not_numbers_are_null_in_the_records(create):
    nan = float("nan")
    runner = Runner(lambda options: nan if options.random_seed == 1 else 0.5)
    options = create(num_restarts=2, random_seed=1)
    first = search(options, runner)
    with open(f"{options.trials()[0].options.output_dir}/trial.json") as file:
        assert json.load(file)["results"]["eval_loss"] is None
    assert search(options, runner) == first
    assert len(runner.done) == 2


@pytest.mark.parametrize(
    "option, place, changed",
    [
        ("vocab_file", "vocab.txt", "vocab.txt"),
        ("init_checkpoint", "m/bert_model.ckpt", "m/bert_model.ckpt.index"),
        ("init_checkpoint", "folder", "folder/model.safetensors"),
    ],
)
def test_other_files_of_the_same_names_are_not_taken(
    create, tmp_path, option, place, changed
):
    """The folders a/ and b/ have the same names, and at first the same content."""
    runner = Runner(lambda options: 0.5)
    for name in ("a", "b"):
        path = tmp_path / name / changed
        path.parent.mkdir(parents=True)
        path.write_text("weights")
    output = {"output_dir": str(tmp_path / "run"), "num_restarts": 2}
    search(create(**output, **{option: str(tmp_path / "a" / place)}), runner)
    other = create(**output, **{option: str(tmp_path / "b" / place)})
    search(other, runner)
    assert len(runner.done) == 2
    (tmp_path / "b" / changed).write_text("other weights")
    with pytest.raises(ValueError, match=f"another {option} of this name: the content"):
        search(other, runner)


def test_the_name_of_a_released_model_needs_no_file(create):
    runner = Runner(lambda options: 0.5)
    options = create(num_restarts=2, init_checkpoint="bert-base-uncased")
    assert search(options, runner) == search(options, runner)
    assert len(runner.done) == 2


class DataRunner(Runner):
    """Records what the run was trained and evaluated on, like a training."""

    def __call__(self, options):
        found = super().__call__(options)
        folder = pathlib.Path(options.output_dir)
        train, dev = map(result_files.entry, data_sets_in(self.data_dir).values())
        record = {"training_data": train, "results": {"eval_results.txt": dev}}
        (folder / "run.json").write_text(json.dumps(record))
        return found


def data_sets_in(folder):
    parts = ("train", "dev")
    return {
        part: result_files.file_data_set(str(folder / f"{part}.csv")) for part in parts
    }


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
@pytest.mark.parametrize("folder", ["a", "b"])
def test_finished_runs_on_other_data_are_not_taken(
    create, tmp_path, changed, message, folder
):
    runner = DataRunner(lambda options: 0.5)
    runner.data_dir = tmp_path / "a"
    search(create(num_restarts=2), runner, write_data(tmp_path / "a"))
    # The same content in another folder is the same data.
    search(create(num_restarts=2), runner, write_data(tmp_path / folder))
    assert len(runner.done) == 2
    # An edited file, or one of the same name in another folder.
    with pytest.raises(ValueError, match=message):
        data_sets = write_data(tmp_path / folder, **changed)
        search(create(num_restarts=3), runner, data_sets)
    assert len(runner.done) == 2


def test_data_that_change_during_a_search_are_refused(create, tmp_path):
    def score(options):
        if options.random_seed == 2:
            write_data(tmp_path, train="fog")
        return 0.5

    runner = DataRunner(score)
    runner.data_dir = tmp_path
    options = create(num_restarts=3, random_seed=1)
    with pytest.raises(ValueError, match=r"random_seed=2 contains a finished run with"):
        search(options, runner, write_data(tmp_path))
    assert len(runner.done) == 2


def test_a_run_that_was_trained_alone_is_not_replaced(create, tmp_path):
    write(tmp_path, "weights of a week")
    with pytest.raises(ValueError, match="contains a single run, which"):
        search(create(num_restarts=2), Runner(lambda options: 0.5))
    assert (tmp_path / "checkpoint").read_text() == "weights of a week"


@pytest.mark.parametrize(
    "values, message",
    [
        ({"sweep": "learning_rate"}, "--sweep: expected NAME=VALUE,VALUE"),
        ({"sweep": "speed=1,2"}, "--sweep: expected NAME=VALUE,VALUE"),
        ({"sweep": "dtype=float32;dtype=float32"}, "with different flag names"),
        ({"sweep": "output_dir=a,b"}, "output_dir cannot be varied"),
        ({"sweep": "length_buckets=1,2"}, "length_buckets cannot be varied"),
        (
            {"sweep": "learning_rate=1e-5,0.00001"},
            "learning_rate has the same value twice",
        ),
        ({"sweep": "learning_rate=x"}, "--learning_rate: expected a number, got 'x'"),
        ({"sweep": "train_batch_size=0"}, "--train_batch_size: expected at least 1"),
        ({"sweep": " ; "}, "--sweep is empty"),
        (
            {"sweep": "random_seed=1,2", "num_restarts": 2},
            "cannot be combined with --num_res",
        ),
        ({"num_restarts": 2, "do_eval": False}, "--num_restarts needs --do_train and"),
        ({"num_restarts": 0}, "--num_restarts: expected at least 1"),
        (
            {
                "num_restarts": 2,
                "device": "multi_worker",
                "worker_hosts": "a:1,b:1",
                "worker_index": 0,
            },
            "cannot be combined with --device=multi_worker",
        ),
        (
            {"best_metric": "eval_f1"},
            "--best_metric has no effect without --eval_every_steps",
        ),
    ],
)
def test_what_is_no_search_is_refused(create, values, message):
    with pytest.raises(options_module.OptionError, match=message):
        create(**values)


def test_if_no_run_has_a_number_the_first_is_kept(create, tmp_path):
    runner = Runner(lambda options: float("nan"))
    report = search(create(num_restarts=2, random_seed=1), runner)
    assert "Kept the best of 2 runs: random_seed=1." in report
    assert "random_seed=2: eval_loss = nan" in report
