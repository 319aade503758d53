"""Every recipe is a command that the tool takes, and says what to expect of it."""

import pathlib
import re
import shutil

import pytest

from bert_tf import command_line
from bert_tf.pretraining import phases
from bert_tf.pretraining import run_options

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = sorted((ROOT / "recipes").glob("*.flags"))
HEADINGS = ("Command:", "Data:", "Hardware:", "Duration:", "Expected:")


def options_of(recipe, *flags):
    """Returns the options that the tool makes of a recipe and more flags."""
    seen = []
    code = command_line.run(
        "run_pretraining",
        run_options.RunPretrainingOptions,
        lambda options, progress: seen.append(options),
        [f"--flagfile={recipe}", "--output_dir=run", *flags],
    )
    assert code == 0
    return seen[0]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_the_tool_takes_every_flag_of_a_recipe(recipe):
    options = options_of(recipe)
    assert options.do_train
    given = re.findall(r"^--(\w+)(?:=(.*))?$", recipe.read_text(), re.M)
    for name, text in given:
        value = getattr(options, name)
        if name == "phase":
            assert text in value
        elif text:
            assert type(value)(text) == value, name
    assert len(phases.options_of(options)) == recipe.read_text().count("\n--phase=")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_says_what_it_needs_and_gives(recipe):
    comments = [
        line.removeprefix("# ")
        for line in recipe.read_text().splitlines()
        if line.startswith("#")
    ]
    for heading in HEADINGS:
        assert any(line.startswith(heading) for line in comments), heading
    assert f"--flagfile=recipes/{recipe.name}" in "\n".join(comments)


@pytest.mark.parametrize("name", ["base_paper", "large_paper", "large_lamb"])
def test_what_was_not_run_here_says_so(name):
    text = (ROOT / "recipes" / f"{name}.flags").read_text()
    for heading in ("Hardware:", "Duration:", "Expected:"):
        part = re.search(rf"# {heading}((?:.*\n)(?:#  .*\n)*)", text)[1]
        assert "published, not run" in part, heading


def test_the_two_phases_of_the_paper_are_its_million_steps():
    first, second = phases.options_of(options_of(ROOT / "recipes" / "base_paper.flags"))
    assert (first.num_train_steps, second.num_train_steps) == (900_000, 100_000)
    assert (first.max_seq_length, second.max_seq_length) == (128, 512)
    assert second.output_dir.endswith("phase_2")
    assert second.init_checkpoint == first.output_dir


def test_a_flag_of_the_command_line_overrides_the_recipe():
    recipe = ROOT / "recipes" / "tiny_two_cores.flags"
    assert options_of(recipe, "--num_train_steps=3").num_train_steps == 3


def test_a_recipe_that_is_not_there_is_one_line(capsys):
    code = command_line.run(
        "run_pretraining",
        run_options.RunPretrainingOptions,
        lambda options, progress: None,
        ["--flagfile=/no/such.flags"],
    )
    assert code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "/no/such.flags" in line


@pytest.fixture(scope="module")
def data(golden, sample_data, tmp_path_factory, run_tool):
    """Folder with the files that the recipes name, of a small text."""
    folder = tmp_path_factory.mktemp("recipes")
    for length, num_masks in ((128, 20), (512, 77)):
        path = folder / "data" / str(length) / "train.tfrecord"
        done = run_tool(
            "create_pretraining_data",
            f"--input_file={sample_data / 'corpus_heldout.txt'}",
            f"--output_file={path}",
            f"--vocab_file={golden / 'vocab.txt'}",
            f"--max_seq_length={length}",
            f"--max_predictions_per_seq={num_masks}",
            "--dupe_factor=1",
        )
        assert done.exit_code == 0, done.stderr
        for name in ("heldout", "unmasked", "domain"):
            for part in path.parent.glob("train.tfrecord*"):
                other = part.name.replace("train", name)
                shutil.copy(part, path.parent / other)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_dry_run_of_a_recipe_tells_its_size(
    data, golden, run_tool, monkeypatch, recipe
):
    monkeypatch.chdir(data)
    done = run_tool(
        "run_pretraining",
        f"--flagfile={recipe}",
        "--output_dir=run",
        "--dry_run",
        # Of the recipe all but the size, whose weights would fill the memory.
        "--init_checkpoint=",
        "--model_size=tiny",
        f"--vocab_file={golden / 'vocab.txt'}",
    )
    assert done.exit_code == 0, done.stderr
    num_phases = max(1, recipe.read_text().count("\n--phase="))
    assert done.stdout.count("parameters ") == num_phases
