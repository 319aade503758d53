"""A run refuses other settings, and run.json describes what was trained."""

import contextlib
import dataclasses

import pytest

from bert_tf.modeling import config as config_module
from bert_tf.pretraining import options as pretraining_options
from bert_tf.tasks.classification import options as classification_options
from bert_tf.training import run_file
from bert_tf.training import run_folder

CONFIG = config_module.BertConfig.named("bert-tiny")


@pytest.fixture
def options(tmp_path):
    return classification_options.RunClassifierOptions(
        output_dir=str(tmp_path / "run"),
        init_checkpoint="/models/uncased/bert_model.ckpt",
        train_file="/data/train.tsv",
        eval_file="/data/dev.tsv",
        do_train=True,
    )


@pytest.fixture
def data(tmp_path):
    """Writes the training data, and returns its data set."""

    def data(text="text\tlabel\n", name="train.tsv"):
        (tmp_path / name).write_text(text)
        return run_file.file_data_set(str(tmp_path / name))

    return data


@pytest.fixture
def folder(options, data):
    """A finished run of 60 steps."""
    folder = run_folder.RunFolder(options.output_dir)
    folder.write_settings(settings(options, data()))
    return folder


def settings(options, training_data, **values):
    return run_folder.Settings(
        task={"task": "classification"},
        config=CONFIG,
        vocabulary=None,
        options=options,
        training_data=training_data,
        **values,
    )


def check(folder, options, training_data, *, step=60, has_steps_left=False, **values):
    folder.check_same_run(
        settings(options, training_data, **values),
        step=step,
        has_steps_left=has_steps_left,
    )


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"eval_batch_size": 99, "do_eval": True, "eval_file": "other.tsv"},
        {"train_file": "/moved/other.tsv"},  # The content is the same.
        {"init_checkpoint": "/moved/uncased/bert_model.ckpt"},
        {"device": "cpu", "save_checkpoints_steps": 7},
    ],
)
def test_a_finished_run_accepts_the_same_settings(folder, options, data, changed):
    check(folder, dataclasses.replace(options, **changed), data())


@pytest.mark.parametrize("has_steps_left", [False, True])
@pytest.mark.parametrize(
    "name, before, now",
    [
        ("learning_rate", 5e-5, 1e-4),
        ("random_seed", 12345, 7),
        ("train_batch_size", 32, 64),
        ("dtype", "float32", "mixed_bfloat16"),
        ("init_checkpoint", "uncased/bert_model.ckpt", "bert-base-cased"),
    ],
)
def test_a_run_refuses_other_settings(
    folder, options, data, name, before, now, has_steps_left
):
    changed = dataclasses.replace(options, **{name: now})
    with pytest.raises(ValueError, match="another --output_dir") as error:
        check(folder, changed, data(), step=30, has_steps_left=has_steps_left)
    assert f"contains a run (30 steps) with {name} {before}; " in str(error.value)
    assert f"this command has {name} {now}. " in str(error.value)


@pytest.mark.parametrize(
    "before, now, said",
    [
        ("16 blocks of 7", "16 blocks of 7", None),
        (None, "16 blocks of 7", "local files, but .* remote files in 16 blocks of 7;"),
        ("16 blocks of 7", None, "remote files in 16 blocks of 7, but .* local files;"),
    ],
)
def test_a_run_does_not_resume_in_another_order(tmp_path, before, now, said):
    options = pretraining_options.RunPretrainingOptions(
        input_file="a", output_dir=str(tmp_path), bert_config_file="b"
    )
    folder = run_folder.RunFolder(options.output_dir)
    data = run_file.DataSet(name="train", order=before)
    folder.write_settings(settings(options, data))
    raises = pytest.raises(ValueError, match=said) if said else contextlib.nullcontext()
    with raises:
        check(folder, options, run_file.DataSet(name="train", order=now), step=30)


@pytest.mark.parametrize("has_steps_left", [False, True])
def test_a_run_refuses_other_training_data(folder, options, data, has_steps_left):
    step = 30 if has_steps_left else 60
    for other in (data("text\tlabel\nwet\train\n"), data("1", name="more.tsv")):
        with pytest.raises(ValueError, match=r"(content|more)"):
            check(folder, options, other, step=step, has_steps_left=has_steps_left)


def test_a_finished_run_can_be_made_longer(folder, options, data):
    longer = dataclasses.replace(options, num_train_epochs=6.0, eval_batch_size=9)
    check(folder, longer, data(), has_steps_left=True)
    other = dataclasses.replace(longer, learning_rate=1e-4)
    with pytest.raises(ValueError, match="another --output_dir") as error:
        check(folder, other, data(), has_steps_left=True)
    assert "num_train_epochs" not in str(error.value)


def test_evaluations_of_one_training_use_one_data_set(folder, options, data):
    options = dataclasses.replace(options, eval_every_steps=5)
    dev, other = (
        {"eval_results.txt": run_file.DataSet(name=name)} for name in ("dev", "ax")
    )
    folder.write_settings(settings(options, data(), results=dev))
    check(folder, options, data(), results=dev)
    with pytest.raises(ValueError, match=r"not evaluated on ax;"):
        check(folder, options, data(), results=other)


def test_the_model_that_a_run_started_from_stays_recorded(folder, options, data):
    for step, hub_name in [(0, "hf://a/b@1111"), (60, "hf://a/b@2222")]:
        run = settings(options, data(), hub_name=hub_name)
        folder.write_settings(run, step=step)
        recorded = run_file.read_run(folder.path)["hub_name"]
        assert recorded == "hf://a/b@1111"


@pytest.mark.parametrize(
    "path, name",
    [
        ("/data/dev.tsv", "dev.tsv"),
        ("/models/uncased/bert_model.ckpt", "uncased/bert_model.ckpt"),
        ("/runs/a/model.ckpt-100", "a/model.ckpt-100"),
        ("/runs/a/best/", "a/best"),
        ("/runs/a/", "a"),
        ("google-bert/bert-base-uncased", "google-bert/bert-base-uncased"),
        ("bert-base-uncased", "bert-base-uncased"),
        ("hf://someone/bert@v1", "hf://someone/bert@v1"),
    ],
)
def test_a_short_name_has_no_folders_that_do_not_matter(path, name):
    assert run_file.short_name(path) == name
    assert run_file.short_name(name) == name
