"""--init_checkpoint takes a checkpoint of any format."""

import json

import pytest

from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import workflow as conversion_workflow
from tests import runs


@pytest.fixture(scope="module")
def released(copy_release, tmp_path_factory):
    """A folder as the released zips have it."""
    return copy_release(tmp_path_factory.mktemp("released") / "uncased_L-2_H-16_A-2")


def test_pretraining_starts_from_the_same_model(pretrain, golden, released, tmp_path):
    conversion_workflow.convert(
        conversion_options.ConvertCheckpointOptions(
            source=released, target=tmp_path / "model.keras", target_format="keras"
        )
    )
    done = pretrain(
        init_checkpoint=tmp_path / "model.keras",
        bert_config_file=None,
        do_train=None,
        do_eval=True,
        max_eval_steps=1,
        eval_batch_size=4,
    )
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
        run_tool(
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
        done = run_tool(
            "run_pretraining",
            f"--init_checkpoint={released}",
            f"--input_file={tmp_path / 'examples.tfrecord'}",
            f"--output_dir={tmp_path / 'run'}",
            "--max_seq_length=32",
            "--max_predictions_per_seq=5",
            "--do_train",
            exit_code=1,
        )
        assert message in done.refusal
        assert not (tmp_path / "run").exists()
