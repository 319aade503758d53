"""Frozen layers: which weights change, what a step costs, what is saved."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.release import rotation
from bert_tf.data import batching
from bert_tf.modeling import classifier
from bert_tf.training import loop
from bert_tf.training import options as training_options
from bert_tf.training import steps
from tests.modeling import small_config

pytestmark = pytest.mark.slow

CONFIG = small_config.create(num_hidden_layers=3)


def source():
    draw = np.random.default_rng(0)
    ids = draw.integers(1, 30, (16, 8))
    ones = np.ones_like(ids)
    return batching.ArraySource(
        {
            "input_ids": ids,
            "input_mask": ones,
            "segment_ids": ones,
            "label_ids": ids[:, 0] % 3,
        }
    )


def trainer_of(output_dir, frozen_layers, num_train_steps=3, **flags):
    defaults = {
        "output_dir": str(output_dir),
        "train_batch_size": 4,
        "learning_rate": 1e-2,
        "log_every_steps": 1,
    }
    return loop.Trainer(
        lambda: classifier.BertClassifier(CONFIG, num_labels=3),
        training_options.TrainerOptions(**defaults | flags),
        num_train_steps=num_train_steps,
        frozen_layers=frozen_layers,
    )


def values_of(trainer):
    variables = checkpoint_names.checkpoint_variables(trainer.model)
    return {name: variable.numpy() for name, variable in variables.items()}


LAYERS = ["bert/encoder/layer_0/", "bert/encoder/layer_1/", "bert/encoder/layer_2/"]


@pytest.mark.parametrize(
    "frozen_layers, frozen, flags",
    [
        (None, (), {}),
        ("0", ("bert/embeddings/",), {}),
        ("2", ("bert/embeddings/", *LAYERS[:2]), {}),
        ("2", ("bert/embeddings/", *LAYERS[:2]), {"gradient_accumulation_steps": 2}),
        ("2", ("bert/embeddings/", *LAYERS[:2]), {"jit_compile": True}),
        ("3", ("bert/embeddings/", *LAYERS), {}),  # The pooler is trained.
        ("all", ("bert/",), {}),
        ("all", ("bert/",), {"device": "mirrored", "num_replicas": 2}),
    ],
)
def test_what_is_frozen_does_not_change_and_has_no_slots(
    tmp_path, frozen_layers, frozen, flags
):
    trainer = trainer_of(tmp_path, frozen_layers, **flags)
    before = values_of(trainer)
    trainer.train(source())
    after = values_of(trainer)
    for name, values in before.items():
        # Key biases start at 0 and have gradient 0.
        if not name.endswith("key/bias"):
            stays = name.startswith(frozen)
            assert np.array_equal(values, after[name]) == stays, name
    saved = bundle.read_names_and_shapes(rotation.latest(str(tmp_path)))
    assert before.keys() <= saved.keys()
    slots = {name.removesuffix("/adam_m") for name in saved if name.endswith("/adam_m")}
    assert slots == {name for name in before if not name.startswith(frozen)}


def test_the_gradient_is_that_of_the_whole_model_and_its_norm_of_what_learns(tmp_path):
    first = {}
    for frozen_layers in (None, "all"):
        trainer = trainer_of(tmp_path / f"{frozen_layers}", frozen_layers)
        batch = next(iter(source().training_batches(batch_size=4, num_steps=1, seed=0)))
        gradients_of = steps.build_gradient_function(trainer.model, random_seed=12345)
        _, gradients = gradients_of(batch, {"classification_loss": tf.constant(4.0)})
        paths = [variable.path for variable in trainer.model.trainable_variables]
        first[frozen_layers] = {paths[at]: value for at, value in gradients.items()}
        trainer.train(source())
    heads = {path: value for path, value in first[None].items() if "bert/" not in path}
    assert first["all"].keys() == heads.keys()
    for path, value in heads.items():
        np.testing.assert_allclose(first["all"][path], value, rtol=1e-5, atol=1e-7)
    lines = {name: _first_line(tmp_path / name) for name in ("None", "all")}
    assert lines["all"]["loss"] == pytest.approx(lines["None"]["loss"], rel=1e-6)
    assert lines["all"]["global_grad_norm"] < lines["None"]["global_grad_norm"]


def _first_line(folder):
    return loop.run_folder.RunFolder(str(folder)).read_metrics()[0]


def products_of_backward_pass(tmp_path, frozen_layers):
    """Returns the number of matrix products in a training step's graph."""
    trainer = trainer_of(tmp_path / f"{frozen_layers}", frozen_layers)
    gradients_of = steps.build_gradient_function(trainer.model, random_seed=1)
    batch = next(iter(source().training_batches(batch_size=4, num_steps=1, seed=0)))
    graph = (
        tf.function(gradients_of, autograph=False)
        .get_concrete_function(batch, {"classification_loss": tf.constant(4.0)})
        .graph
    )
    return sum("MatMul" in node.op for node in graph.as_graph_def().node)


def test_the_backward_pass_ends_where_the_frozen_layers_begin(tmp_path):
    counts = [products_of_backward_pass(tmp_path, n) for n in (None, "1", "2", "all")]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4
    forward = 3 * 8 + 4  # Per layer six and two of attention; then pooler and head.
    assert counts[-1] <= forward + 2


def test_a_frozen_run_is_killed_and_goes_on(tmp_path):
    whole = trainer_of(tmp_path / "whole", "1", num_train_steps=4)
    whole.train(source())
    flags = {"save_checkpoints_steps": 2, "iterations_per_loop": 2}
    part = trainer_of(tmp_path / "part", "1", num_train_steps=4, **flags)
    save = part._save

    def save_and_stop():
        save()
        raise KeyboardInterrupt

    part._save = save_and_stop
    with pytest.raises(KeyboardInterrupt):
        part.train(source())
    resumed = trainer_of(tmp_path / "part", "1", num_train_steps=4, **flags)
    assert resumed.step == 2
    resumed.train(source())
    expected = values_of(whole)
    for name, values in values_of(resumed).items():
        np.testing.assert_array_equal(values, expected[name])


def test_layers_that_thaw_need_slots_that_are_not_there(tmp_path):
    trainer_of(tmp_path, "2").train(source())
    with pytest.raises(ValueError, match=r"Cannot resume from .*: it lacks"):
        trainer_of(tmp_path, None)


def test_more_layers_than_there_are_cannot_be_frozen(tmp_path):
    with pytest.raises(ValueError, match="--frozen_layers=4, but the model has only 3"):
        trainer_of(tmp_path, "4")
