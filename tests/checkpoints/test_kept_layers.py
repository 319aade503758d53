"""Models with some of a checkpoint's layers."""

import numpy as np
import pytest

import bert_tf
from bert_tf import options as options_module
from bert_tf.checkpoints import formats
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import workflow as conversion_workflow

KERNEL = "bert/encoder/layer_{}/output/dense/kernel"


def convert(source, target, layers):
    options = conversion_options.ConvertCheckpointOptions(
        source=str(source),
        target=str(target),
        target_format="bert",
        keep_layers=layers,
        verbose=True,
    )
    return conversion_workflow.run(options)


def weights_of(path):
    source = formats.open_source(path)
    return dict(source.read_each(source.shapes))


def test_the_layers_that_remain_are_numbered_again(released_folder, tmp_path):
    report = convert(released_folder, tmp_path / "top", [1])
    assert "kept 1 of 2 layers (1); fine-tune the model again" in report
    assert f"{KERNEL.format(1)} -> {KERNEL.format(0)}" in report
    before, after = weights_of(released_folder), weights_of(tmp_path / "top")
    assert not [name for name in after if "layer_1" in name]
    for name, weight in after.items():
        own_name = name.replace("layer_0", "layer_1")
        np.testing.assert_array_equal(weight, before[own_name], err_msg=name)


def test_the_lowest_layers_compute_what_they_computed(released_folder, tmp_path):
    convert(released_folder, tmp_path / "low", [0])
    whole, low = map(bert_tf.load_model, (released_folder, tmp_path / "low"))
    assert low.config.num_hidden_layers == 1
    tokenizer = bert_tf.FullTokenizer(released_folder / "vocab.txt")
    features = bert_tf.pack(tokenizer, ["The lighthouse."], max_seq_length=8)
    np.testing.assert_array_equal(
        low.bert(features)["sequence_output"],
        whole.bert(features)["all_encoder_layers"][0],
    )


@pytest.mark.parametrize(
    "layers, error, message",
    [
        ([0, 2], ValueError, r"keep_layers=0,2, but the highest layer of .* is 1"),
        ([1, 0], options_module.OptionError, "1,0: expected different layers in asc"),
        ([1, 1], options_module.OptionError, "1,1: expected different layers in asc"),
        ([-1], options_module.OptionError, "expected at least 0, got -1"),
    ],
)
def test_layers_that_are_not_there_are_refused(
    released_folder, tmp_path, layers, error, message
):
    with pytest.raises(error, match=message):
        convert(released_folder, tmp_path / "new", layers)
    assert not (tmp_path / "new").exists()
