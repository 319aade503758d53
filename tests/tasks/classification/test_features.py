import numpy as np
import pytest

from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import features as features_module
from bert_tf.tasks.classification import glue
from bert_tf.tokenization import full
from bert_tf.tokenization import in_graph

LABELS = ["no", "yes"]


@pytest.fixture(scope="module")
def tokenizer(golden):
    return in_graph.InGraphTokenizer(str(golden / "vocab.txt"))


def example(text_a, text_b=None, label=None):
    return examples_module.InputExample(
        guid="dev-0", text_a=text_a, text_b=text_b, label=label
    )


def test_a_pair_is_cut_from_its_longer_text(tokenizer):
    pair = example("a a a a a a", "b b", label="no")
    columns = features_module.convert_examples_to_features([pair], LABELS, 8, tokenizer)
    vocabulary = tokenizer.vocabulary
    pieces = [vocabulary.tokens[i] for i in columns["input_ids"][0]]
    assert pieces == ["[CLS]", "a", "a", "a", "[SEP]", "b", "b", "[SEP]"]
    assert columns["segment_ids"][0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]


def test_examples_without_a_label_get_label_0_as_in_2018(tokenizer):
    columns = features_module.convert_examples_to_features(
        [example("a")], LABELS, 8, tokenizer
    )
    assert columns["label_ids"].tolist() == [0]


def test_both_tokenizers_give_the_same_columns_over_several_calls(
    golden, tokenizer, monkeypatch
):
    monkeypatch.setattr(features_module, "EXAMPLES_PER_CALL", 3)
    lines = (golden / "text.txt").read_text(encoding="utf-8").split("\n")
    rows = [example(line, label="yes") for line in lines[:10]]
    seen = []
    fast = features_module.convert_examples_to_features(
        rows,
        LABELS,
        16,
        tokenizer,
        progress=lambda stage, done, total, **_: seen.append((done, total)),
    )
    plain = features_module.convert_examples_to_features(
        rows, LABELS, 16, full.FullTokenizer(str(golden / "vocab.txt"))
    )
    assert seen == [(3, 10), (6, 10), (9, 10), (10, 10)]
    for name, column in plain.items():
        np.testing.assert_array_equal(fast[name], column)


@pytest.mark.parametrize("task_name, folder", [("cola", "CoLA"), ("mrpc", "MRPC")])
def test_columns_equal_those_of_2018(shared, task_name, folder):
    recorded = np.load(shared / "golden" / "classifier" / f"{task_name}_dev.npz")
    vocabulary = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    processor = glue.PROCESSORS[task_name]()
    rows = processor.get_dev_examples(str(shared / "data" / "glue" / folder))
    start, stop = recorded["rows"]
    columns = features_module.convert_examples_to_features(
        rows[start:stop],
        processor.get_labels(),
        int(recorded["max_seq_length"]),
        in_graph.InGraphTokenizer(str(vocabulary)),
    )
    for name, column in columns.items():
        np.testing.assert_array_equal(column, recorded[name], err_msg=name)
