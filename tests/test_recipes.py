"""Every recipe is a valid command and states the expected result."""

import fnmatch
import json
import pathlib
import re

import pytest

from bert_tf import command_line
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.tasks.classification import options as classification_options

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bert_tf" / "recipes"
RECIPES = sorted(FOLDER.glob("*.flags"))
DATA_RECIPES = sorted((FOLDER / "data").glob("*.flags"))


def options_of(recipe, *flags):
    """Returns the options that the tool makes of a recipe and more flags."""
    return parsed(
        "run_pretraining",
        pretraining_options.RunPretrainingOptions,
        [f"--flagfile={recipe}", "--output_dir=run", *flags],
    )


def data_options_of(recipe):
    """Returns the options that create_pretraining_data makes of a recipe."""
    return parsed(
        "create_pretraining_data",
        pretraining_data_options.CreatePretrainingDataOptions,
        [f"--flagfile={recipe}"],
    )


def parsed(tool, options_class, flags):
    seen = []
    code = command_line.run(
        tool, options_class, lambda options: seen.append(options), flags
    )
    assert code == 0
    return seen[0]


@pytest.mark.parametrize(
    "flags, expected",
    [
        ([], {"model_size": "tiny", "learning_rate": 2e-3, "max_train_minutes": 60.0}),
        (["--max_train_minutes=5000"], {"model_size": "tiny"}),  # A small text.
        (["--model_size=base"], {"model_size": "base", "learning_rate": 1e-4}),
        (["--learning_rate=0.5"], {"learning_rate": 0.5, "next_sentence": False}),
        (["--num_train_steps=50"], {"max_train_minutes": None, "num_warmup_steps": 5}),
        (["--phases=30@64,20@128"], {"num_train_steps": 50, "num_warmup_steps": 5}),
        (["--max_seq_length=256"], {"max_predictions_per_seq": 39}),
        (
            ["--config_overrides=initializer_range=0.5"],
            {
                "config_overrides": (
                    "initializer_range=0.5",
                    "position_initializer=sinusoidal",
                )
            },
        ),
        (["--device=cpu"], {"train_batch_size": 32, "save_checkpoints_steps": 200}),
        (["--device=tpu"], {"train_batch_size": 512, "save_checkpoints_steps": 1000}),
        (
            ["--init_checkpoint=bert-tf-mini"],
            {"model_size": None, "learning_rate": 5e-4, "config_overrides": ()},
        ),
    ],
)
def test_the_recipe_auto_chooses_what_is_not_given(tmp_path, capsys, flags, expected):
    text = tmp_path / "text.txt"
    text.write_text("One sentence.\n")
    common = [f"--input_file={text}", f"--output_dir={tmp_path}", *flags]
    options = options_of_auto("--do_train", *common)
    assert {name: getattr(options, name) for name in expected} == expected
    assert options.bias_correction
    assert "--recipe=auto: --" in capsys.readouterr().err
    # A resumed run keeps what it has recorded, also after another choice.
    flags = {"learning_rate": 0.25, "bias_correction": False, "model_size": None}
    (tmp_path / "run.json").write_text(json.dumps({"flags": flags}))
    again = options_of_auto(*common)
    assert again.learning_rate in (0.25, 0.5)
    assert not again.bias_correction


def options_of_auto(*flags):
    record = pretraining_options.RunPretrainingOptions
    return parsed("pretrain", record, ["--recipe=auto", *flags])


def test_the_recipe_auto_of_fine_tuning_follows_the_width(tmp_path, capsys):
    flags = ["--train_file=a.csv", "--do_train", f"--output_dir={tmp_path}"]
    record = classification_options.RunClassifierOptions
    options = parsed("bert_tf classify", record, ["--recipe=auto", *flags])
    assert (options.learning_rate, options.num_train_epochs) == (3e-4, 5.0)
    before = parsed("bert_tf classify", record, flags)
    assert (before.learning_rate, before.bias_correction) == (5e-5, False)
    assert "These are the settings of 2018;" in capsys.readouterr().err
    record = pretraining_options.RunPretrainingOptions
    flags = ["--recipe=auto", f"--input_file={__file__}", "--num_warmup_steps=5"]
    flags += ["--do_train", f"--output_dir={tmp_path}"]
    assert command_line.run("pretrain", record, lambda _: None, flags) == 2
    assert "needs --num_train_steps" in capsys.readouterr().err
    record = pretraining_options.FillMaskOptions
    flags = ["--recipe=auto", "--text=a", "--init_checkpoint=b"]
    assert command_line.run("fill_mask", record, lambda _: None, flags) == 2
    assert "--recipe=auto is for tools that train" in capsys.readouterr().err


def runs_of(recipe):
    """Returns the options of every run of a recipe: its phases, or itself."""
    return options_of(recipe).each_phase()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_the_tool_takes_every_flag_of_a_recipe(recipe):
    options = options_of(recipe)
    assert options.do_train
    given = re.findall(r"^--(\w+)(?:=(.*))?$", recipe.read_text(), re.M)
    for name, text in given:
        value = getattr(options, name)
        if isinstance(value, tuple):
            assert value == tuple(text.split(",")), name
        elif isinstance(value, bool):
            assert value == (text != "false"), name
        elif text:
            assert type(value)(text) == value, name


def test_no_recipe_trains_on_what_another_one_evaluates():
    runs = [run for recipe in RECIPES for run in runs_of(recipe)]
    held_out = {run.eval_input_file for run in runs} - {None}
    assert held_out
    for run in runs:
        for name in run.input_file.split(","):
            assert not fnmatch.filter(held_out, name), name


@pytest.mark.parametrize("recipe", DATA_RECIPES, ids=lambda path: path.stem)
def test_data_recipes_make_what_the_phases_read(recipe):
    made = data_options_of(recipe)
    assert len(DATA_RECIPES) == 2
    named = f"bert_tf create-data --flagfile=recipe:data/{recipe.stem}"
    readers = [r for r in RECIPES if named in r.read_text()]
    assert readers
    for reader in readers:
        options = options_of(reader)
        patterns = options.input_file.split(",")
        if options.phases or made.max_seq_length == options.max_seq_length:
            assert any(fnmatch.filter(made.output_file, name) for name in patterns)
        phases = [
            phase
            for phase in options.each_phase()
            if phase.max_seq_length == made.max_seq_length
        ]
        for phase in phases:
            assert phase.max_predictions_per_seq == made.max_predictions_per_seq
        wanted = round(made.max_seq_length * made.masked_lm_prob)
        assert wanted <= made.max_predictions_per_seq


@pytest.mark.parametrize("size", ["base", "large"])
def test_the_two_phases_of_the_paper_are_its_million_steps(size):
    recipe = FOLDER / f"{size}_paper.flags"
    options = options_of(recipe)
    first, second = options.each_phase()
    # Of one schedule, so the steps of the second phase include those of the first.
    assert (first.num_train_steps, second.num_train_steps) == (900_000, 1_000_000)
    assert (first.max_seq_length, second.max_seq_length) == (128, 512)
    assert (options.num_train_steps, options.num_warmup_steps) == (1_000_000, 10_000)
    assert options.learning_rate == 1e-4


def test_a_recipe_is_found_by_name_also_in_a_flag_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = data_options_of("recipe:data/length_512")
    assert data == data_options_of(FOLDER / "data" / "length_512.flags")
    own = tmp_path / "own.flags"
    own.write_text("--flagfile=recipe:tiny_two_cores\n--num_train_steps=3\n")
    recipe = FOLDER / "tiny_two_cores.flags"
    assert options_of(own) == options_of(recipe, "--num_train_steps=3")


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("/no/such.flags", "/no/such.flags"),
        ("recipe:mini", "expected one of base_paper, data/length_128"),
    ],
)
def test_a_recipe_that_is_not_there_is_one_line(capsys, monkeypatch, given, wanted):
    monkeypatch.chdir("/")
    code = command_line.run(
        "run_pretraining",
        pretraining_options.RunPretrainingOptions,
        lambda options: None,
        [f"--flagfile={given}"],
    )
    assert code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert wanted in line
