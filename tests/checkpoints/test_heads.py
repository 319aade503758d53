"""Names of weights in checkpoints, and the table of heads."""

import pytest

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.modeling import bert
from bert_tf.modeling import classifier
from tests.checkpoints import sources
from tests.modeling import small_config

TINY = small_config.create(type_vocab_size=3)


@pytest.mark.parametrize("kind", checkpoint_heads.KINDS)
def test_a_row_lists_the_weights_of_its_model(kind):
    head = sources.head_of_kind(kind)
    model = checkpoint_heads.create_model(TINY, head)
    variables = checkpoint_names.checkpoint_variables(model)
    found = {name: tuple(variable.shape) for name, variable in variables.items()}
    encoder = checkpoint_names.encoder_shapes(TINY)
    assert found == encoder | checkpoint_heads.head_shapes(TINY, kind, head.num_labels)
    assert checkpoint_heads.kind_of(model) == kind
    assert all(map(checkpoint_heads.is_head_weight, set(found) - set(encoder)))
    assert not any(map(checkpoint_heads.is_head_weight, encoder))


@pytest.mark.parametrize(
    "names, kind",
    [
        (["bert/pooler/dense/bias"], "encoder"),
        (["cls/predictions/output_bias"], "masked_lm"),
        (["cls/predictions/output_bias", "cls/seq_relationship/output_bias"], None),
        (["output_weights"], "classification"),  # Or tags, or choices: the likeliest.
        (["cls/squad/output_bias"], "question_answering"),
        # A fine-tuned head counts before the pretraining heads that were left in.
        (["cls/seq_relationship/output_bias", "output_weights"], "classification"),
    ],
)
def test_names_show_the_head(names, kind):
    head = checkpoint_heads.head_of(dict.fromkeys(names, (5, 4)))
    assert head.kind == (kind or "pretraining")
    assert head.is_known == ("output_weights" not in names)


def test_one_output_is_a_number_unless_the_head_is_of_another_kind():
    shapes = {"output_weights": (1, 4), "output_bias": (1,)}
    assert checkpoint_heads.head_of(shapes).label_kind == "regression"
    tagger = checkpoint_heads.head_of(shapes, kind="token_classification")
    assert tagger.label_kind == "single_label"


def test_the_name_of_a_model_does_not_matter():
    encoder = checkpoint_names.checkpoint_variables(bert.BertModel(TINY, name="layer"))
    assert "bert/encoder/layer_0/attention/self/query/kernel" in encoder
    model = classifier.BertClassifier(TINY, num_labels=2, name="anything")
    written = checkpoint_names.checkpoint_variables(model)
    assert written.keys() == encoder.keys() | {"output_weights", "output_bias"}
