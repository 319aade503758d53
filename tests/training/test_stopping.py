"""A run that has to stop says why in one line; its checkpoints stay intact."""

import functools
import itertools
import math
import os
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.release import bundle
from bert_tf.data import record_checks
from bert_tf.training import saving
from bert_tf.training import steps
from bert_tf.training import stopping
from tests import runs

CHECKPOINT_BYTES = 131_000  # Of the recorded model, with Adam's slots.
NAN, INF = math.nan, math.inf


@pytest.fixture
def pretrain(pretrain):
    """Runs the tool on the recorded examples, in order, four per step."""
    return functools.partial(
        pretrain, num_train_steps=10, num_warmup_steps=2, shuffle_buffer_size=1
    )


def plant(records, path, number):
    """Copies TFRecords and sets the first mask weight of one of them to NaN."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for index, record in enumerate(tf.data.TFRecordDataset(str(records))):
            example = tf.train.Example.FromString(record.numpy())
            if index == number:
                weights = example.features.feature["masked_lm_weights"]
                weights.float_list.value[0] = float("nan")
            writer.write(example.SerializeToString())


def test_a_loss_that_is_no_number_stops_the_run(
    pretrain, golden, tmp_path, monkeypatch
):
    plant(golden / "model" / "examples.tfrecord", tmp_path / "bad.tfrecord", 26)
    # The check before training reads a sample. Here, it misses the damaged record.
    monkeypatch.setattr(record_checks, "_RECORDS_SAMPLED", 1)
    run = tmp_path / "run"
    done = pretrain(
        input_file=tmp_path / "bad.tfrecord", save_checkpoints_steps=4, exit_code=1
    )
    # Example 26 is in the seventh batch of four.
    [line] = [line for line in done.stderr.splitlines() if "run_pretraining:" in line]
    assert "stopped at step 7 because its loss is nan" in line
    assert tf.train.latest_checkpoint(str(run)) == str(run / "model.ckpt-4")
    weights = tf.train.load_checkpoint(str(run / "model.ckpt-4"))
    for name in weights.get_variable_to_shape_map():
        assert np.isfinite(weights.get_tensor(name)).all(), name
    assert "NaN" not in (run / "metrics.jsonl").read_text()


@pytest.mark.slow
def test_a_gradient_that_no_scale_makes_finite_stops_a_float16_run(
    pretrain, monkeypatch
):
    gradient_function = steps.build_gradient_function

    def without_numbers(*arguments, **settings):
        compute = gradient_function(*arguments, **settings)

        def gradients_of(batch, weights):
            terms, gradients = compute(batch, weights)
            return terms, {place: NAN * value for place, value in gradients.items()}

        return gradients_of

    monkeypatch.setattr(steps, "build_gradient_function", without_numbers)
    done = pretrain(dtype="mixed_float16", num_train_steps=20, exit_code=1)
    [line] = [line for line in done.stderr.splitlines() if "run_pretraining:" in line]
    # The scale falls from 2 ** 15 to 1 in fifteen steps, which are all skipped.
    assert "stopped at step 16" in line
    assert "its gradient norm nan" in line
    assert "--dtype=mixed_bfloat16" in line


@pytest.mark.parametrize(
    "losses, norms, scales, expected",
    [
        ([1, 2, 3], [1, 1, 1], None, 3),
        ([1, NAN, 3], [1, 1, 1], None, 1),
        # From here on the weights are NaN.
        ([1, 2, 3], [INF, 1, 1], None, 0),
        # Loss scaling handles it, as long as the scale can be lowered.
        ([1, 2, 3], [INF, 1, 1], [4, 2, 2], 3),
        ([1, 2, 3], [NAN, NAN, NAN], [4, 2, 1], 2),
        ([1, 2, 3], [1, 1, 1], [1, 1, 1], 3),
    ],
)
def test_steps_before_the_first_without_a_number_are_counted(
    losses, norms, scales, expected
):
    history = {"loss": np.float32(losses), "global_grad_norm": np.float32(norms)}
    if scales:
        history["loss_scale"] = np.float32(scales)
    assert stopping.count_finite_steps(history) == expected


@pytest.mark.slow
def test_a_full_disk_ends_the_run_with_one_line_and_the_last_checkpoint_whole(
    pretrain, small_disk, tmp_path
):
    # There is room for two checkpoints, but not for three.
    run = small_disk(int(2.6 * CHECKPOINT_BYTES)) / "run"
    done = pretrain(output_dir=run, save_checkpoints_steps=2, exit_code=1)
    assert done.refusal == (
        f"run_pretraining: The checkpoint {run / 'model.ckpt-6'} cannot be written: No "
        "space left on device. Earlier checkpoints are unchanged."
    )
    prefix = tf.train.latest_checkpoint(str(run))
    assert prefix == str(run / "model.ckpt-4")
    # Once there is room, the run resumes and ends like an uninterrupted one.
    shutil.copytree(run, tmp_path / "moved")
    (tmp_path / "moved" / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-4"\n'
    )
    pretrain(output_dir=tmp_path / "moved")
    pretrain(output_dir=tmp_path / "uninterrupted")
    runs.assert_same_tensors(tmp_path / "moved", tmp_path / "uninterrupted")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_until_the_run_can_stop(number):
    before = signal.getsignal(number)
    with stopping.Interrupts() as interrupted:
        assert not interrupted.pending
        os.kill(os.getpid(), number)
        assert interrupted.pending
        if number == signal.SIGINT:  # A second Ctrl-C acts at once.
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
        else:  # Schedulers may send several.
            os.kill(os.getpid(), number)
        with pytest.raises(KeyboardInterrupt) as raised:
            interrupted.interrupt("step 3 is saved")
    assert raised.value.args == (number, "step 3 is saved")
    assert signal.getsignal(number) is before


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, word, exit_code",
    [
        (signal.SIGINT, "interrupted", 130),
        # `test_multi_worker.py` sends it to a run in `make test`.
        (signal.SIGTERM, "terminated", 143),
    ],
)
def test_an_interrupted_run_goes_on_as_if_nothing_had_been(
    pretrain, dropout_config, tmp_path, signal_at, number, word, exit_code
):
    def train(name, exit_code=0):
        return pretrain(
            output_dir=tmp_path / name,
            bert_config_file=dropout_config,
            num_train_steps=16,
            eval_every_steps=4,
            # The same in each evaluation, so the first is the best, the third the last.
            best_metric="eval_next_sentence_accuracy",
            early_stopping_evals=2,
            shuffle_buffer_size=0,
            exit_code=exit_code,
        )

    def record(name):
        return [
            {k: value for k, value in line.items() if "second" not in k}
            for line in runs.metrics(tmp_path / name)
        ]

    train("uninterrupted")
    with signal_at(6, number):
        done = train("interrupted", exit_code=exit_code)
    folder = tmp_path / "interrupted"
    step = int(bundle.latest(folder).rpartition("-")[2])
    assert done.refusal == (
        f"run_pretraining: {word}; step {step} is saved in {folder}. Run the same "
        "command again; training continues from its last checkpoint."
    )
    assert len(record("interrupted")) < len(record("uninterrupted"))
    train("interrupted")
    assert record("interrupted") == record("uninterrupted")
    folders = [tmp_path / name for name in ("interrupted", "uninterrupted")]
    runs.assert_same_tensors(*folders)
    best = [bundle.latest(folder / "best") for folder in folders]
    assert [path.rpartition("-")[2] for path in best] == ["4", "4"]


@pytest.mark.parametrize(
    "metric, scores, is_best",
    [
        ("eval_loss", (2.0, 1.0, 1.5), (True, True, False)),  # Lower is better.
        ("eval_accuracy", (0.5, 0.4, 0.6), (True, False, True)),  # Higher is better.
        # A tie is no improvement: the earlier checkpoint stays.
        ("eval_loss", (1.0, 1.0), (True, False)),
        ("eval_mcc", (-0.2, -0.1, 0.0), (True, True, True)),  # Scores may be negative.
        ("eval_accuracy", (0.0, 0.0), (True, False)),  # The first is best, even at 0.
        # A worse score in between does not lower the bar.
        ("eval_accuracy", (0.6, 0.4, 0.5), (True, False, False)),
        # NaN is worse than every number, also if it comes first.
        ("eval_loss", (NAN, 2.0, NAN, 1.0), (False, True, False, True)),
        ("eval_accuracy", (NAN, 0.0, NAN), (False, True, False)),
        # Infinity is null in metrics.jsonl, which a resumed run reads as NaN.
        ("eval_perplexity", (math.inf, math.inf, 9.0), (False, False, True)),
    ],
)
def test_a_score_is_best_if_it_beats_all_before_it(metric, scores, is_best):
    chosen = stopping.Selection([metric])
    assert tuple(chosen.is_best({metric: score}) for score in scores) == is_best
    assert not chosen.should_stop  # Without patience never.


@pytest.mark.parametrize(
    "patience, losses, stops",
    [
        (2, (1.0, 1.1, 1.2), (False, False, True)),
        (2, (1.0, 1.0, 1.0), (False, False, True)),  # A tie uses up patience.
        (2, (1.0, 1.1, 0.9, 1.0, 0.9), (False, False, False, False, True)),
        (2, (NAN, NAN, 1.0), (False, True, False)),  # NaN uses up patience.
    ],
)
def test_stops_after_patience_evaluations_without_a_better_score(
    patience, losses, stops
):
    chosen = stopping.Selection(["eval_loss"], patience)
    found = []
    for loss in losses:
        chosen.is_best({"eval_loss": loss})
        found.append(chosen.should_stop)
    assert tuple(found) == stops


def test_state_is_replayed_from_the_log():
    lines = [
        {"step": 1, "loss": 3.0},
        {"step": 1, "eval_loss": 2.0},
        {"step": 2, "eval_loss": 2.5},
    ]
    selection = stopping.Selection(["eval_accuracy", "eval_loss"], 3)
    selection.replay(lines)
    assert (selection.best, selection.num_since_best) == (2.0, 1)


def test_the_first_metric_that_an_evaluation_has_counts():
    scores = {"eval_loss": 1.0, "eval_accuracy": 1.0}
    metrics = ("eval_f1", "eval_accuracy", "eval_loss")
    assert stopping.metric_of(scores, metrics) == "eval_accuracy"
    with pytest.raises(ValueError, match=r"eval_f2.*eval_accuracy, eval_loss"):
        stopping.Selection(["eval_f2"]).is_best(scores)


@pytest.fixture
def pretrain_by_clock(pretrain, monkeypatch):
    """Runs the tool with a clock that advances by a second per reading."""

    def run(**flags):
        ticks = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(stopping, "_now", lambda: float(next(ticks)))
            return pretrain(
                num_train_steps=None,
                num_warmup_steps=None,
                learning_rate=0.001,
                iterations_per_loop=1,
                **flags,
            )

    return run


@pytest.mark.slow
def test_a_run_ends_with_its_time_and_a_later_part_goes_on_from_there(
    pretrain_by_clock, tmp_path
):
    run = tmp_path / "run"
    pretrain_by_clock(max_train_minutes=1, warmup_proportion=0.2)
    lines = runs.metrics(run)
    # The clock is read three times per step: 60 seconds are about 20 steps.
    runs.assert_rate_follows_time(lines, warmup=0.2)
    assert lines[-1]["learning_rate"] < 1e-4
    assert saving.read_train_seconds(run) >= 60
    assert tf.train.latest_checkpoint(str(run)).endswith(f"-{lines[-1]['step']}")

    # The time is up: the same command has nothing left to do.
    pretrain_by_clock(max_train_minutes=1, warmup_proportion=0.2)
    assert runs.metrics(run) == lines

    # Of twice the time, half is over.
    pretrain_by_clock(max_train_minutes=2, warmup_proportion=0.2)
    added = runs.metrics(run)[len(lines) :]
    assert added[0]["step"] == lines[-1]["step"] + 1
    assert added[0]["learning_rate"] == pytest.approx(0.5e-3, rel=0.1)
