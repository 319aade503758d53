"""--init_checkpoint takes a checkpoint of any format."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import workflow as conversion_workflow
from tests import runs

# NumPy 2 about TensorFlow's variables, while Keras writes its own files.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"
)
TRAIN = "text\tlabel\nwet\train\ndry\tsun\nvery wet\train\nvery dry\tsun\n"


@pytest.fixture(scope="module")
def released(copy_release, tmp_path_factory):
    """A folder as the released zips have it."""
    return copy_release(tmp_path_factory.mktemp("released") / "uncased_L-2_H-16_A-2")


@pytest.fixture(scope="module")
def checkpoint(released, tmp_path_factory):
    """Returns a function from a format to the released model in it."""
    folder = tmp_path_factory.mktemp("converted")

    def convert(target_format):
        target = folder / (target_format.replace("keras", "model.keras"))
        options = conversion_options.ConvertCheckpointOptions(
            source=released, target=target, target_format=target_format
        )
        conversion_workflow.convert(options)
        return target

    return convert


@pytest.mark.slow
def test_a_classifier_starts_from_the_same_encoder(
    run_tool, released, checkpoint, tmp_path
):
    (tmp_path / "train.tsv").write_text(TRAIN)
    done = run_tool(
        "run_classifier",
        init_checkpoint=checkpoint("hugging_face"),
        train_file=tmp_path / "train.tsv",
        output_dir=tmp_path / "run",
        do_train=True,
        learning_rate=0,
        train_batch_size=2,
        max_seq_length=16,
        num_train_epochs=1,
    )
    assert done.exit_code == 0, done.stderr
    run = tmp_path / "run"
    assert (run / "vocab.txt").read_text() == (released / "vocab.txt").read_text()
    assert json.loads((run / "task.json").read_text())["do_lower_case"] is True
    weight = "bert/encoder/layer_1/output/dense/kernel"
    before = tf.train.load_variable(str(released / "bert_model.ckpt"), weight)
    after = tf.train.load_variable(str(run), weight)
    np.testing.assert_array_equal(after, before)


def test_pretraining_starts_from_the_same_model(pretrain, golden, checkpoint, tmp_path):
    done = pretrain(
        init_checkpoint=checkpoint("keras"),
        bert_config_file=None,
        do_train=None,
        do_eval=True,
        max_eval_steps=1,
        eval_batch_size=4,
    )
    assert done.exit_code == 0, done.stderr
    assert "first 4 of 48 examples" in done.stderr
    recorded = json.loads((golden / "model" / "trajectory.json").read_text())
    results = runs.scores(tmp_path / "run")
    assert results["masked_lm_loss"] == pytest.approx(
        recorded["before_each_step"][0][0], rel=1e-5
    )


@pytest.mark.slow
def test_examples_of_another_vocabulary_or_casing_are_refused(
    run_tool, sample_data, released, golden, tmp_path
):
    tokens = (golden / "vocab.txt").read_text().splitlines()
    swapped = tmp_path / "swapped.txt"
    swapped.write_text("\n".join([*tokens[:-2], tokens[-1], tokens[-2]]) + "\n")
    for vocab_file, casing, message in (
        (swapped, "true", "vocabulary"),
        (golden / "vocab.txt", "false", "was created with --do_lower_case=False"),
    ):
        done = run_tool(
            "create_pretraining_data",
            f"--input_file={sample_data / 'corpus_heldout.txt'}",
            f"--output_file={tmp_path / 'examples.tfrecord'}",
            f"--vocab_file={vocab_file}",
            f"--do_lower_case={casing}",
            "--max_seq_length=32",
            "--max_predictions_per_seq=5",
            "--dupe_factor=1",
            "--max_unknown_share=1",
        )
        assert done.exit_code == 0, done.stderr
        done = run_tool(
            "run_pretraining",
            f"--init_checkpoint={released}",
            f"--input_file={tmp_path / 'examples.tfrecord'}",
            f"--output_dir={tmp_path / 'run'}",
            "--max_seq_length=32",
            "--max_predictions_per_seq=5",
            "--do_train",
        )
        assert done.exit_code == 1
        assert message in done.refusal
        assert not (tmp_path / "run").exists()
