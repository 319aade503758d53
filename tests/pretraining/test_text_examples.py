"""Training on raw text: the same batches wherever a run resumes, and clear mistakes."""

import functools
import json

import numpy as np
import pytest

from bert_tf import options as options_module
from bert_tf.checkpoints.release import bundle
from bert_tf.data import corpus as data_corpus
from bert_tf.modeling import config as config_module
from bert_tf.pretraining import examples as pretraining_examples
from bert_tf.pretraining import options as pretraining_options
from bert_tf.pretraining import text_examples
from bert_tf.pretraining_data import graph_pools
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import loop
from tests import runs

BATCH_SIZE = 8
# About two epochs of six pools.
NUM_STEPS = 100


@pytest.fixture(scope="module")
def text(golden, tmp_path_factory):
    """Path of 120 documents of the recorded text."""
    documents = (golden / "text.txt").read_text("utf-8").strip().split("\n\n")
    numbers = np.random.default_rng(3).integers(len(documents), size=120)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(documents[n] for n in numbers), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def open_text(golden, text):
    """Returns a function from flags to examples of the text, in pools of one shard."""

    def open_with(**flags):
        options = pretraining_options.RunPretrainingOptions(
            input_file=str(text),
            output_dir="none",
            bert_config_file=str(golden / "model" / "bert_config.json"),
            max_seq_length=32,
            max_predictions_per_seq=5,
            **flags,
        )
        return pretraining_examples.open_examples(
            options.input_file,
            options,
            config=config_module.BertConfig.from_json_file(options.bert_config_file),
            vocabulary=vocabulary_module.Vocabulary.load(golden / "vocab.txt"),
            source=None,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_corpus, "_MIN_SHARD_MB", 1e-4)
        patch.setattr(graph_pools, "SHARDS_PER_POOL", 1)
        patch.setattr(graph_pools, "ROWS_AT_A_TIME", 40)
        yield open_with


@pytest.fixture(scope="module")
def examples(open_text):
    return open_text()


@pytest.fixture(scope="module")
def whole(examples):
    """The batches of all steps."""
    return read(examples.training_source("none", "text", is_written=False))


def read(source, **arguments):
    given = {"batch_size": BATCH_SIZE, "num_steps": NUM_STEPS, **arguments}
    return list(source.training_batches(**given).as_numpy_iterator())


@pytest.mark.slow
def test_a_run_goes_on_with_the_same_batches_at_any_step(
    examples, whole, tmp_path, monkeypatch
):
    assert len(np.unique([batch["input_ids"] for batch in whole], axis=0)) > 80
    # Without recorded numbers of examples, they are computed.
    source = examples.training_source(str(tmp_path), "text", is_written=True)
    runs.assert_same_batches(read(source, start_step=40), whole[40:])
    # With them, no earlier pool is sampled.
    monkeypatch.setattr(graph_pools.TextPools, "count", None)
    source = examples.training_source(str(tmp_path), "text", is_written=True)
    runs.assert_same_batches(read(source, start_step=63), whole[63:])
    recorded = json.loads((tmp_path / text_examples.COUNTS_FILE).read_text())
    assert len(recorded["num_examples"]) > examples._pools.num_pools > 4
    # Those of another text are not used.
    source = examples.training_source(str(tmp_path), "other", is_written=True)
    with pytest.raises(TypeError):
        read(source, start_step=63)


@pytest.mark.slow
def test_shares_of_workers_are_parts_of_the_global_batch(examples, whole):
    source = examples.training_source("none", "text", is_written=False)
    parts = [
        read(source, num_steps=20, share=share) for share in (range(2), range(2, 8))
    ]
    joined = [
        {name: np.concatenate([part[name] for part in both]) for name in both[0]}
        for both in zip(*parts, strict=True)
    ]
    runs.assert_same_batches(joined, whole[:20])


@pytest.mark.slow
def test_an_evaluation_reads_the_text_once_and_always_the_same(examples, whole):
    source = examples.evaluation_source()
    columns = []
    for size in (7, 64):
        batches = list(source.evaluation_batches(batch_size=size).as_numpy_iterator())
        assert all(len(batch["input_ids"]) == size for batch in batches)
        joined = {
            name: np.concatenate([batch[name] for batch in batches])
            for name in batches[0]
        }
        is_real = joined.pop("is_real_example") > 0
        assert is_real.sum() == source.num_examples == np.argmin([*is_real, 0])
        assert not joined["input_ids"][~is_real].any()
        columns.append({name: values[is_real] for name, values in joined.items()})
    runs.assert_same_batches(columns[:1], columns[1:])
    evaluated = {row.tobytes() for row in columns[0]["input_ids"]}
    seen = [row.tobytes() in evaluated for b in whole for row in b["input_ids"]]
    assert np.mean(seen) < 0.05


@pytest.mark.parametrize("values", [{}, {"num_examples": ["1"]}, {"num_examples": 3}])
def test_a_damaged_file_of_numbers_is_named(examples, tmp_path, values):
    (tmp_path / text_examples.COUNTS_FILE).write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"text_examples\.json.*remove it"):
        examples.training_source(str(tmp_path), "text", is_written=True)


@pytest.mark.slow
def test_flags_decide_how_text_becomes_examples(open_text, golden):
    def first(**flags):
        source = open_text(**flags).training_source("none", "", is_written=False)
        return read(source, num_steps=1, batch_size=256)[0]

    single = first(next_sentence=False, do_lower_case=False, short_seq_prob=0.0)
    assert "next_sentence_labels" not in single
    assert not single["segment_ids"].any()
    unk = vocabulary_module.Vocabulary.load(golden / "vocab.txt").unk_id
    short = first(next_sentence=False, short_seq_prob=1.0, masking="span")
    assert short["input_mask"].mean() < single["input_mask"].mean() - 0.03
    unknown = [(part["input_ids"] == unk).mean() for part in (single, short)]
    assert unknown[0] > unknown[1] + 0.01  # Cased words are not in the vocabulary.


class Kill(BaseException):
    """Ends a run in the middle of its steps."""


@pytest.fixture
def pretrain(pretrain, golden, dropout_config, text):
    """Runs the tool on the text."""
    return functools.partial(
        pretrain,
        input_file=text,
        bert_config_file=dropout_config,
        vocab_file=golden / "vocab.txt",
        max_seq_length=32,
        max_predictions_per_seq=5,
        num_train_steps=12,
        num_warmup_steps=2,
    )


def test_a_run_trains_on_text_and_resumes_with_the_same_weights(
    pretrain, tmp_path, monkeypatch, text
):
    pretrain(output_dir=tmp_path / "whole")
    run = json.loads((tmp_path / "whole" / "run.json").read_text())
    assert len(run["training_data"]["checksum"]) == 64

    def kill(self, *arguments):
        if self.step >= 7:
            raise Kill
        return advance(self, *arguments)

    advance = loop.Trainer._advance
    flags = {"save_checkpoints_steps": 5, "iterations_per_loop": 1}
    with monkeypatch.context() as patch:
        patch.setattr(loop.Trainer, "_advance", kill)
        with pytest.raises(Kill):
            pretrain(**flags)
    # The vocabulary is also found in the run's folder.
    pretrain(**flags, vocab_file=None)
    runs.assert_same_tensors(tmp_path / "run", tmp_path / "whole")
    text_of_another = tmp_path / "text.txt"
    text_of_another.write_text(text.read_text() + "\n\none more")
    done = pretrain(input_file=text_of_another, num_train_steps=20, exit_code=1)
    assert "text (different content)" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text(path.read_text().replace("the", "The")),
        lambda path: path.unlink(),
    ],
)
@pytest.mark.parametrize("reads", ["training", "evaluation"])
def test_text_that_changes_during_a_run_ends_it(
    pretrain, tmp_path, monkeypatch, text, change, reads
):
    paths = {name: tmp_path / f"{name}.txt" for name in ("training", "evaluation")}
    for path in paths.values():
        path.write_text(text.read_text())

    def advance_and_change(self, *arguments):
        loss = advance(self, *arguments)
        if self.step == 45:
            change(paths[reads])
        return loss

    advance = loop.Trainer._advance
    monkeypatch.setattr(loop.Trainer, "_advance", advance_and_change)
    flags = {"iterations_per_loop": 5, "save_checkpoints_steps": 40}
    flags |= {"eval_every_steps": 40, "max_eval_steps": 2, "num_train_steps": 400}
    done = pretrain(
        input_file=paths["training"],
        eval_input_file=paths["evaluation"],
        **flags,
        exit_code=1,
    )
    assert done.refusal == (
        f"run_pretraining: {paths[reads]} has changed since training started. Put the "
        "old file back and start the same command again, or start a new run."
    )
    assert int(bundle.latest(tmp_path / "run").rpartition("-")[2]) >= 40


NO_VOCABULARY = {"vocab_file": None}


@pytest.mark.parametrize(
    "content, flags, code, said",
    [
        (None, NO_VOCABULARY, 2, "--vocab_file is needed"),
        (
            None,
            {**NO_VOCABULARY, "bert_config_file": None, "model_size": "tiny"},
            2,
            "--vocab_file is needed",
        ),
        (None, {"shuffle_buffer_size": 1}, 2, "--shuffle_buffer_size applies to"),
        (None, {"masked_lm_prob": 0.3}, 1, "pass --max_predictions_per_seq=10"),
        (None, {"objective": "left_to_right"}, 1, "--next_sentence=false"),
        (None, {"short_seq_prob": 1.5}, 2, "short_seq_prob"),
        (None, {"input_file": "/no/text*.txt"}, 1, "/no/text*.txt"),
        (b"the cat\nsat", {}, 1, "found one document"),
        (b"the cat\n\nthe caf\xe9\n", {}, 1, "text.txt:3: not UTF-8"),
        (b"\n \n", {}, 1, "Found no text"),
        (b"", {}, 1, "There are no records"),
        # Another script.
        ("ก ข\n\nค\n".encode(), {}, 1, "100.0% of 3 pieces are [UNK], and --max_unk"),
        (b"the\0cat\n\nsat\n", {}, 1, "not a TFRecord file"),
    ],
)
def test_a_mistake_ends_in_one_clear_line(
    pretrain, text, tmp_path, content, flags, code, said
):
    path = tmp_path / "text.txt"
    path.write_bytes(text.read_bytes() if content is None else content)
    done = pretrain(**{"input_file": path, **flags}, exit_code=code)
    assert said in done.refusal


@pytest.mark.slow
def test_text_and_records_are_distinguished_by_content(
    golden, pretrain, text, tmp_path
):
    records = tmp_path / "text.txt"
    records.write_bytes((golden / "model" / "examples.tfrecord").read_bytes())
    done = pretrain(input_file=f"{text},{records}", exit_code=1)
    assert f"{text} contains text, but {records} contains records" in done.stderr
    lengths = {"max_seq_length": 64, "max_predictions_per_seq": 10}
    pretrain(input_file=records, **lengths)
    for flags in ({"do_lower_case": True}, {"masked_lm_prob": 0.1}):
        done = pretrain(input_file=records, **lengths, **flags, exit_code=2)
        assert "applies to text, but" in done.stderr


def test_masks_cannot_be_set_for_the_evaluation_alone(golden, examples):
    lengths = {"max_seq_length": 64, "max_predictions_per_seq": 10}
    paths = {"input_file": str(golden / "model" / "examples.tfrecord")}

    def check(**flags):
        options = pretraining_options.RunPretrainingOptions(
            output_dir="none", bert_config_file="none", **paths, **lengths, **flags
        )
        config = config_module.BertConfig.from_json_file(
            golden / "model" / "bert_config.json"
        )
        records = pretraining_examples.open_examples(
            options.input_file, options, config=config, vocabulary=None, source=None
        )
        pretraining_examples.check_options(options, records, examples)

    check(short_seq_prob=0.2, max_unknown_share=0.5)
    for flags in ({"masked_lm_prob": 0.1}, {"do_whole_word_mask": True}):
        with pytest.raises(options_module.OptionError, match="applies to text, but"):
            check(**flags)


@pytest.mark.slow
def test_casing_and_objective_stay_with_a_run(pretrain, tmp_path):
    single = {"next_sentence": False}
    pretrain(do_lower_case=False, num_train_steps=1, **single)
    pretrain(num_train_steps=2, **single)
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["do_lower_case"] is False
    evaluates = {"do_train": False, "do_eval": True}
    for flags in ({"num_train_steps": 3}, evaluates):
        done = pretrain(do_lower_case=True, **single, **flags, exit_code=1)
        assert "do_lower_case=False" in done.stderr
        done = pretrain(**flags, exit_code=1)
        assert "pass --next_sentence=False to bert_tf pretrain" in done.stderr
