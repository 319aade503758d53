import keras
import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints import loading


@pytest.mark.parametrize(
    "name, class_name",
    [
        ("encoder", "BertModel"),
        ("classification", "BertClassifier"),
        ("token_classification", "BertTokenClassifier"),
        ("masked_lm", "BertPretrainer"),
    ],
)
def test_a_checkpoint_gives_its_model_and_its_tokenizer(hugging_face, name, class_name):
    model, tokenizer = bert_tf.from_pretrained(hugging_face / name)
    assert type(model).__name__ == class_name
    assert tokenizer.max_seq_length == model.config.max_position_embeddings
    features = tokenizer(["the cat sat"])
    if name == "masked_lm":
        features["masked_lm_positions"] = np.array([[1]], np.int32)
    expected = loading.load_model(hugging_face / name)(features)
    # The masked-word model has no pooler in its file, so each load draws a new one.
    outputs = model(features)
    compared = outputs.keys() - ({"pooled_output"} if "lm" in name else set())
    assert compared
    for output in compared:
        keras.tree.map_structure(
            np.testing.assert_array_equal, outputs[output], expected[output]
        )


def test_head_and_dtype_can_be_chosen(hugging_face):
    model, _ = bert_tf.from_pretrained(
        hugging_face / "classification", head="encoder", dtype="mixed_bfloat16"
    )
    assert isinstance(model, bert_tf.BertModel)
    assert model.dtype_policy.name == "mixed_bfloat16"


@pytest.mark.parametrize(
    "head, message",
    [
        ("classifier", "head is 'classifier'; expected one of encoder, masked_lm"),
        ("question_answering", "no such head .* pass head=bert_tf.BertSpanPredictor"),
        ("multiple_choice", "is classification.* pass head=bert_tf.BertMultipleChoice"),
        ("token_classification", "is classification.* new head, pass num_labels="),
    ],
)
def test_a_head_that_the_checkpoint_lacks_is_refused(hugging_face, head, message):
    with pytest.raises(ValueError, match=message):
        bert_tf.from_pretrained(hugging_face / "classification", head=head)


def test_a_number_of_labels_asks_for_a_head_of_that_size(hugging_face, caplog):
    folder = hugging_face / "classification"
    model, tokenizer = bert_tf.from_pretrained(
        folder, head="token_classification", num_labels=4
    )
    assert isinstance(model, bert_tf.BertTokenClassifier)
    assert model(tokenizer(["a"]))["logits"].shape[-1] == 4
    assert "train the model before you use it" in caplog.text


def test_the_kind_of_an_ambiguous_head_can_be_given(released):
    from bert_tf.checkpoints.release import bundle

    folder = released("uncased_L-2_H-16_A-2")
    tensors = bundle.read(
        folder / "bert_model.ckpt",
        bundle.read_names_and_shapes(folder / "bert_model.ckpt"),
    )
    encoder = {name: value for name, value in tensors.items() if "cls/" not in name}
    head = {"output_weights": np.ones([3, 16], np.float32)}
    head["output_bias"] = np.zeros([3], np.float32)
    for path in folder.glob("bert_model.ckpt*"):
        path.unlink()
    bundle.save(folder / "model.ckpt-1", encoder | head)
    prefix = folder / "model.ckpt-1"
    model, _ = bert_tf.from_pretrained(prefix)
    assert isinstance(model, bert_tf.BertClassifier)
    model, _ = bert_tf.from_pretrained(prefix, head="token_classification")
    assert isinstance(model, bert_tf.BertTokenClassifier)


ARGUMENTS = {
    "BertClassifier": {"num_labels": 4, "dropout": 0.3},
    "BertMultiLabelClassifier": {"num_labels": 4},
    "BertTokenClassifier": {"num_labels": 5},
}


@pytest.mark.parametrize(
    "name",
    sorted({name for name in bert_tf.__all__ if "Bert" in name} - {"BertConfig"}),
)
def test_every_model_reads_any_checkpoint(hugging_face, name, caplog):
    folder = hugging_face / "classification"
    model = getattr(bert_tf, name).from_pretrained(folder, **ARGUMENTS.get(name, {}))
    encoder = model if name == "BertModel" else model.encoder
    expected = loading.load_model(folder).bert
    for weight, same in zip(encoder.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(weight, same)
    has_new_head = name not in ("BertModel", "BertBiEncoder")
    assert ("train the model before you use it" in caplog.text) == has_new_head
    assert getattr(model, "task_dropout_rate", 0) == 0.3 or name != "BertClassifier"


def test_the_head_of_the_checkpoint_is_kept_if_it_fits(hugging_face, caplog):
    folder = hugging_face / "classification"
    model = bert_tf.BertClassifier.from_pretrained(folder)
    expected = loading.load_model(folder)
    np.testing.assert_array_equal(model.output_weights, expected.output_weights)
    assert "newly initialized" not in caplog.text.lower()
    with pytest.raises(ValueError, match="pass num_labels"):
        bert_tf.BertTokenClassifier.from_pretrained(folder)
