import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data import batching
from bert_tf.data import tfrecord
from bert_tf.modeling import config as config_module
from bert_tf.modeling import pretrainer
from bert_tf.pretraining_data import options as pretraining_data_options
from bert_tf.pretraining_data import vectorized_sampling
from bert_tf.pretraining_data import workflow as pretraining_data_workflow
from tests import ring
from tests import runs

LENGTHS = {"max_seq_length": 64, "max_predictions_per_seq": 10}


def test_sequences_follow_one_another():
    columns = {
        "input_ids": [[2, 7, 8, 3, 0, 0, 0, 0], [2, 5, 6, 5, 3, 9, 9, 3]],
        "input_mask": [[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]],
        "segment_ids": [[0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]],
        "masked_lm_positions": [[1, 0, 0], [2, 6, 0]],
        "masked_lm_ids": [[17, 0, 0], [16, 19, 0]],
        "masked_lm_weights": [[1.0, 0, 0], [1.0, 1.0, 0]],
        "next_sentence_labels": [[1], [0]],
    }
    extra = {
        "input_ids": [2, 4, 3, 3, 0, 0, 0, 0],
        "input_mask": [1, 1, 1, 1, 0, 0, 0, 0],
        "segment_ids": [0, 0, 0, 1, 0, 0, 0, 0],
        "masked_lm_positions": [1, 2, 0],
        "masked_lm_ids": [14, 13, 0],
        "masked_lm_weights": [1.0, 1.0, 0],
        "next_sentence_labels": [1],
    }
    columns = {name: np.array([*rows, extra[name]]) for name, rows in columns.items()}
    expected = {
        "input_ids": [[2, 7, 8, 3, 2, 4, 3, 3], [2, 5, 6, 5, 3, 9, 9, 3]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]],
        "segment_ids": [[0, 0, 1, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 1, 1, 1]],
        "sequence_ids": [[1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1, 1]],
        "position_ids": [[0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6, 7]],
        "cls_positions": [[0, 4], [0, 0]],
        "masked_lm_positions": [[1, 5, 6], [2, 6, 0]],
        "masked_lm_ids": [[17, 14, 13], [16, 19, 0]],
        "masked_lm_weights": [[1.0, 1.0, 1.0], [1.0, 1.0, 0]],
        "next_sentence_labels": [[1, 1], [0, 0]],
    }
    packed = vectorized_sampling.packed(columns)
    assert {name: values.tolist() for name, values in packed.items()} == expected
    # A third prediction has no room where there are only two places for them.
    for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
        columns[name] = columns[name][:, :2]
    assert len(vectorized_sampling.packed(columns)["input_ids"]) == 3


@pytest.fixture(scope="module")
def records(golden, tmp_path_factory):
    """Reports and paths of the same small text, by the names of their flags."""
    folder = tmp_path_factory.mktemp("packing")
    found = {}
    for name, flags in {"padded": {}, "packed": {"packed_rows": True}}.items():
        options = pretraining_data_options.CreatePretrainingDataOptions(
            input_file=str(golden / "text.txt"),
            output_file=str(folder / name),
            vocab_file=str(golden / "vocab.txt"),
            short_seq_prob=1.0,
            dupe_factor=6,
            **{**LENGTHS, **flags},
        )
        found[name] = (pretraining_data_workflow.create_data(options), folder / name)
    return found


def sequences_of(columns):
    """Returns what each sequence of the rows consists of, in any order."""
    found = []
    for row in range(len(columns["input_ids"])):
        ids = columns.get("sequence_ids", columns["input_mask"])[row]
        for number in range(1, ids.max() + 1):
            [places] = np.nonzero(ids == number)
            positions = columns["masked_lm_positions"][row]
            mine = columns["masked_lm_weights"][row] > 0
            mine &= (positions >= places[0]) & (positions <= places[-1])
            found.append(
                (
                    columns["input_ids"][row, places].tolist(),
                    columns["segment_ids"][row, places].tolist(),
                    (positions[mine] - places[0]).tolist(),
                    columns["masked_lm_ids"][row, mine].tolist(),
                    columns["next_sentence_labels"][row, number - 1],
                )
            )
    return sorted(found)


def test_packed_records_hold_the_same_sequences(records):
    padded, packed = (runs.columns(records[name][1]) for name in ("padded", "packed"))
    assert sequences_of(packed) == sequences_of(padded)
    assert len(packed["input_ids"]) < len(padded["input_ids"])


def test_the_report_gives_the_padding_before_and_after(records):
    before, after = (records[name][0] for name in ("padded", "packed"))
    assert after.counts.instances == before.counts.instances == before.counts.rows
    assert after.counts.masked == before.counts.masked
    assert after.counts.random_next == before.counts.random_next
    share = f"{1 - after.mean_fill:.1%} padding; "
    assert f"{share}{1 - before.mean_fill:.1%}" in str(after)
    assert after.mean_fill > before.mean_fill + 0.05


def all_rows(path):
    source = batching.TFRecordSource(tfrecord.RecordFiles([path]))
    size = source.num_examples
    [batch] = batching.evaluation_batches(source, batch_size=size)
    return batch


@pytest.mark.parametrize("jit_compile", [False, ring.slow(True)])
def test_losses_and_gradients_are_those_of_padded_rows(records, golden, jit_compile):
    model = pretrainer.BertPretrainer(
        config_module.BertConfig.from_json_file(golden / "model" / "bert_config.json")
    )
    model.build()
    # Large weights, so that attention to another sequence would show.
    rng = np.random.default_rng(3)
    for weight in model.trainable_variables:
        weight.assign(weight + 0.1 * rng.normal(size=weight.shape))

    @tf.function(jit_compile=jit_compile)
    def losses_and_gradients(features):
        with tf.GradientTape() as tape:
            outputs = model(features)
            sums = model.loss_sums(features, outputs)
            weights = model.loss_weights(features)
            loss = sum(sums[name] / weights[name] for name in sums)
        metrics = model.metric_sums(features, outputs)
        variables = [variable.value for variable in model.trainable_variables]
        return sums, weights, metrics, tape.gradient(loss, variables)

    padded, packed = (
        losses_and_gradients(all_rows(records[name][1]))
        for name in ("padded", "packed")
    )
    for name in model.loss_names:
        assert float(packed[1][name]) == float(padded[1][name])
        assert float(packed[0][name]) == pytest.approx(float(padded[0][name]), rel=1e-5)
    for name, (hits, weight) in padded[2].items():
        assert [float(v) for v in packed[2][name]] == [float(hits), float(weight)]
    for found, expected in zip(packed[3], padded[3], strict=True):
        scale = np.abs(tf.convert_to_tensor(expected)).max()
        np.testing.assert_allclose(
            tf.convert_to_tensor(found),
            tf.convert_to_tensor(expected),
            atol=1e-5 * max(scale, 1e-2),
        )


@pytest.mark.slow
def test_a_run_trains_and_evaluates_on_packed_rows(records, golden, run_tool, tmp_path):
    done = run_tool(
        "run_pretraining",
        f"--input_file={records['packed'][1]}",
        f"--output_dir={tmp_path / 'run'}",
        f"--bert_config_file={golden / 'model' / 'bert_config.json'}",
        "--do_train",
        "--do_eval",
        "--train_batch_size=4",
        "--gradient_accumulation_steps=2",
        "--num_train_steps=3",
        "--num_warmup_steps=1",
        "--jit_compile",
        *(f"--{name}={value}" for name, value in LENGTHS.items()),
    )
    assert "next_sentence_accuracy = " in done.stdout
