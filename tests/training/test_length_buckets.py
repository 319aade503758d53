"""Length buckets change neither losses nor outputs."""

import dataclasses

import numpy as np
import pytest

from bert_tf.data import batching
from bert_tf.modeling import classifier
from bert_tf.modeling import multiple_choice as modeling_multiple_choice
from bert_tf.modeling import span_predictor
from bert_tf.modeling import token_classifier
from bert_tf.modeling.kernels import computed_rows
from bert_tf.modeling.kernels import cpu
from bert_tf.training import loop
from bert_tf.training import options as training_options
from tests.modeling import small_config

pytestmark = pytest.mark.slow

LENGTH = 24
BUCKETS = (8, 16)
# Rows of a batch of four; batches of 8, 24 and 16 places when read in order. Evaluation
# reads the longest first: batches of 24, 16 and 8 places.
LENGTHS = [5, 8, 3, 6, 24, 4, 9, 2, 16, 9, 10, 3]
CONFIG = small_config.create(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=2,
    max_position_embeddings=LENGTH,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


WITH_DROPOUT = dataclasses.replace(
    CONFIG, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1
)


def columns_of(kind):
    """Returns the features of a task with 12 examples."""
    draw = np.random.default_rng(3)
    lengths = np.array(LENGTHS)
    shape = (len(lengths), LENGTH)
    if kind == "choices":
        shape = (len(lengths), 3, LENGTH)
        lengths = np.stack([lengths, np.full_like(lengths, 4), lengths // 2 + 1], 1)
    mask = np.arange(LENGTH) < lengths[..., None]
    labels = {
        "tags": {"tag_ids": np.where(mask, draw.integers(-1, 3, shape), -1)},
        "spans": {
            "start_positions": draw.integers(0, LENGTHS),
            "end_positions": draw.integers(0, LENGTHS),
        },
    }
    return {
        "input_ids": draw.integers(1, 50, shape) * mask,
        "input_mask": mask,
        "segment_ids": draw.integers(0, 2, shape) * mask,
        **labels.get(kind, {"label_ids": draw.integers(0, 3, len(LENGTHS))}),
    }


MODELS = {
    "classes": lambda: classifier.BertClassifier(CONFIG, num_labels=3, dropout=0.0),
    "with dropout": lambda: classifier.BertClassifier(WITH_DROPOUT, num_labels=3),
    "choices": lambda: modeling_multiple_choice.BertMultipleChoice(CONFIG, dropout=0.0),
    "tags": lambda: token_classifier.BertTokenClassifier(
        CONFIG, num_labels=3, dropout=0.0
    ),
    "spans": lambda: span_predictor.BertSpanPredictor(CONFIG),
}
OUTPUTS = {
    "classes": ("logits", "probabilities"),
    "choices": ("logits", "probabilities"),
    "tags": ("logits", "probabilities"),
    "spans": ("start_logits", "end_logits"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bucketed(training_options.TrainerOptions):
    length_buckets: tuple[int, ...] = ()
    jit_compile: bool | None = None


class InOrder(Bucketed):
    shuffle_buffer_size = 1


def run_of(kind, output_dir, monkeypatch, options_class=None, **flags):
    """Trains six steps in few calls; returns trainer, source and all losses."""
    # Calls take 1, 2 and 3 steps, also on a busy machine.
    monkeypatch.setattr(loop, "SECONDS_PER_CALL", 1e6)
    defaults = {
        "output_dir": str(output_dir),
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "learning_rate": 1e-3,
    }
    trainer = loop.Trainer(
        MODELS[kind],
        (options_class or InOrder)(**defaults | flags),
        num_train_steps=6,
    )
    source = batching.ArraySource(columns_of(kind))
    trainer.train(source)
    metrics = trainer.folder.read_metrics()
    return trainer, source, [line["loss"] for line in metrics]


@pytest.fixture
def leave_padding_out(monkeypatch):
    """Returns a function that makes small batches leave padding out of training.

    It returns a list that has one element for each time that rows are selected.
    """

    def change():
        built = []
        create = computed_rows.RealRows.__init__

        def watched(rows, visible, keys):
            built.append(rows)
            create(rows, visible, keys)

        monkeypatch.setattr(cpu, "MIN_ELEMENTS", 1)
        monkeypatch.setattr(computed_rows, "_SMALLEST_GAP", 4)
        monkeypatch.setattr(computed_rows.RealRows, "__init__", watched)
        return built

    return change


@pytest.fixture(scope="module")
def padded(tmp_path_factory):
    """Returns a function from a task to its run without buckets, computed once."""
    known = {}

    def compute(kind):
        if kind not in known:
            folder = tmp_path_factory.mktemp(kind)
            with pytest.MonkeyPatch.context() as patch:
                known[kind] = run_of(kind, folder, patch, length_buckets=())
        return known[kind]

    return compute


def watch(monkeypatch, name):
    """Returns a list that gets the lengths of the batches of each call of a method."""
    seen = []
    method = getattr(batching.ArraySource, name)

    def watched(source, **arguments):
        dataset = method(source, **arguments)
        seen.append([batch["input_ids"].shape[-1] for batch in dataset])
        return dataset

    monkeypatch.setattr(batching.ArraySource, name, watched)
    return seen


@pytest.mark.parametrize(
    "kind, flags",
    [
        ("classes", {}),
        ("classes", {"gradient_accumulation_steps": 2}),
        ("classes", {"device": "mirrored", "num_replicas": 2}),
        ("classes", {"jit_compile": True}),  # One compilation per bucket.
        ("classes", {"iterations_per_loop": 1}),
        ("choices", {}),
        ("tags", {}),
        ("spans", {}),
    ],
)
def test_losses_are_those_of_padded_batches(kind, flags, padded, tmp_path, monkeypatch):
    _, _, expected = padded(kind)
    seen = watch(monkeypatch, "training_batches")
    _, _, losses = run_of(kind, tmp_path, monkeypatch, length_buckets=BUCKETS, **flags)
    assert seen == [[8, 24, 16, 8, 24, 16]]
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-5)


# Classes and spans have the two kinds of outputs: per example and per position.
@pytest.mark.parametrize(
    "kind, flags",
    [
        ("classes", {}),
        ("classes", {"device": "mirrored", "num_replicas": 2}),
        ("spans", {}),
        ("choices", {}),
        ("tags", {}),
    ],
)
def test_scores_and_outputs_are_those_of_padded_batches(
    kind, flags, padded, tmp_path, monkeypatch
):
    trainer, source, _ = padded(kind)
    expected = trainer.evaluate(source)
    outputs = trainer.predict(source, OUTPUTS[kind])
    cut, _, _ = run_of(kind, tmp_path, monkeypatch, length_buckets=BUCKETS, **flags)
    seen = watch(monkeypatch, "evaluation_batches")
    assert cut.evaluate(source) == pytest.approx(expected, abs=1e-5)
    found = cut.predict(source, OUTPUTS[kind])
    assert seen == [[24, 16, 8]] * 2
    for key, values in outputs.items():
        assert found[key].shape == values.shape
        if values.shape[1:2] == (LENGTH,):
            real = columns_of(kind)["input_mask"]
            assert np.all(found[key][0, 16:] == (-1e4 if "logits" in key else 0))
            values, found[key] = values[real], found[key][real]
        np.testing.assert_allclose(found[key], values, atol=1e-5)


def test_the_first_examples_and_rows_of_unknown_length_are_read_in_order(
    padded, tmp_path, monkeypatch
):
    trainer, source, _ = padded("classes")
    expected = trainer.predict(source)["probabilities"]
    cut, _, _ = run_of("classes", tmp_path, monkeypatch, length_buckets=BUCKETS)
    seen = watch(monkeypatch, "evaluation_batches")
    first = trainer.evaluate(source, max_examples=4)
    assert cut.evaluate(source, max_examples=4) == pytest.approx(first, abs=1e-5)
    monkeypatch.setattr(batching.ArraySource, "row_lengths", lambda source: None)
    found = cut.predict(source)["probabilities"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert seen == [[24, 24, 24], [8, 24, 16], [8, 24, 16]]


@pytest.fixture(scope="module")
def with_dropout(tmp_path_factory):
    """Returns the losses of a run with buckets whose rows are all computed."""
    folder = tmp_path_factory.mktemp("with_dropout")
    with pytest.MonkeyPatch.context() as patch:
        return run_of("with dropout", folder, patch, length_buckets=BUCKETS)[2]


@pytest.mark.parametrize(
    "flags", [{}, {"gradient_accumulation_steps": 2, "recompute_layers": True}]
)
def test_losses_are_the_same_without_the_rows_of_padding(
    flags, with_dropout, leave_padding_out, tmp_path, monkeypatch
):
    built = leave_padding_out()
    flags["length_buckets"] = BUCKETS
    _, _, losses = run_of("with dropout", tmp_path, monkeypatch, **flags)
    assert built
    np.testing.assert_allclose(losses, with_dropout, rtol=0, atol=1e-5)


@pytest.mark.parametrize("leaves_padding_out", [False, True])
def test_a_run_with_buckets_goes_on_as_if_it_had_not_been_killed(
    leaves_padding_out, leave_padding_out, tmp_path, monkeypatch
):
    built = leave_padding_out() if leaves_padding_out else []
    flags = {
        "length_buckets": BUCKETS,
        "options_class": Bucketed,  # Shuffles.
        "save_checkpoints_steps": 4,
    }
    whole, _, losses = run_of("classes", tmp_path / "whole", monkeypatch, **flags)

    class KilledError(Exception):
        pass

    def save(trainer):
        trainer._writer.save(trainer.step)
        trainer._writer.finish()
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainer, "_save", save)
        with pytest.raises(KilledError):
            run_of("classes", tmp_path / "killed", patch, **flags)
    resumed, _, again = run_of("classes", tmp_path / "killed", monkeypatch, **flags)
    assert bool(built) is leaves_padding_out
    assert resumed.resumed
    assert again == losses
    for one, other in zip(whole.model.weights, resumed.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
