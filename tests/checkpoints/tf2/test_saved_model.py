"""SavedModels of TF Hub's series 1, 3 and 4, written by the libraries they are of.

See foreign/make_tf_models.py and foreign/make_hub_module.py.
"""

import pathlib
import zipfile

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from bert_tf.checkpoints import loading
from bert_tf.checkpoints import release
from bert_tf.checkpoints.release import bundle
from bert_tf.checkpoints.tf2 import saved_model

FOREIGN = pathlib.Path(__file__).parents[1] / "foreign"
EXPORTS = {
    "encoder": "saved_model/encoder",
    "with_mlm": "saved_model/with_mlm",
    "erf": "saved_model/erf",
    "series_1": "hub_module",
}


@pytest.fixture
def unpacked(tmp_path):
    """Unpacks a SavedModel, and gives its folder: unpacked("encoder")."""

    def unpack(name):
        with zipfile.ZipFile(FOREIGN / EXPORTS[name] / "model.zip") as archive:
            archive.extractall(tmp_path / name)
        return tmp_path / name

    return unpack


@pytest.mark.parametrize(
    "name, activation, sizes, do_lower_case, num_pieces",
    [
        ("encoder", "gelu", (32, 4, 48), True, 60),
        ("erf", "gelu_erf", (32, 4, 48), None, None),  # Without assets.
        ("series_1", "gelu", (16, 4, 24), True, 60),  # Kernels are matrices.
    ],
)
def test_what_is_beside_the_weights_is_found(
    unpacked, name, activation, sizes, do_lower_case, num_pieces
):
    source = saved_model.open_source(unpacked(name))
    config = source.config
    hidden, heads, inner = sizes
    assert config.hidden_act == activation
    assert config.layer_norm_epsilon == 1e-12
    assert (config.hidden_size, config.num_attention_heads) == (hidden, heads)
    assert config.intermediate_size == inner
    assert (config.vocab_size, config.max_position_embeddings) == (60, 24)
    assert source.do_lower_case is do_lower_case
    assert num_pieces == (source.vocabulary and len(source.vocabulary))
    assert [note for note in source.notes if "dropout" not in note] == []


def _change(folder, change):
    """Changes every node of a SavedModel's graph and functions."""
    path = folder / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    graph = saved.meta_graphs[0].graph_def
    for nodes in (graph.node, *(f.node_def for f in graph.library.function)):
        for node in nodes:
            change(node)
    path.write_bytes(saved.SerializeToString())


def _epsilon_of_another(node):
    if node.op == "Const" and node.name.endswith("batchnorm/add/y"):
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1e-5, tf.float32))


def _relu(node):
    if "Gelu" in node.name:
        node.op = "Relu"


def _erf_in_head(node):
    if node.name.endswith("transform/dense/Gelu/Tanh"):
        node.op = "Erf"


def _nothing_to_be_seen(node):
    if "Gelu" in node.name or "batchnorm" in node.name:
        node.op = "Identity"


@pytest.mark.parametrize(
    "change, activation, epsilon, note",
    [
        (_epsilon_of_another, "gelu", 1e-5, None),
        (_relu, "relu", 1e-12, None),
        (_erf_in_head, "gelu", 1e-12, "its masked-word head computes gelu_erf"),
        (_nothing_to_be_seen, "gelu", 1e-12, "does not record hidden_act gelu, "),
    ],
)
def test_activation_and_epsilon_are_what_the_functions_compute(
    unpacked, change, activation, epsilon, note
):
    folder = unpacked("with_mlm")
    _change(folder, change)
    source = saved_model.open_source(folder)
    assert source.config.hidden_act == activation
    assert source.config.layer_norm_epsilon == epsilon
    assert note is None or any(note in one for one in source.notes)


def test_a_number_of_heads_that_is_not_to_be_seen_is_asked_for(unpacked):
    folder = unpacked("series_1")
    path = folder / "saved_model.pb"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"attention/self/Mul/y", b"attention/self/Mul/z"))
    source = saved_model.open_source(folder)
    assert source.config is None
    assert "pass --bert_config_file" in source.notes[0]
    with pytest.raises(ValueError, match=r"size of the model in .* is unknown"):
        loading.create_model(source)


def _without_variables(folder):
    for path in (folder / "variables").iterdir():
        path.unlink()


def _cut(name, size):
    def cut(folder):
        path = folder / name
        path.write_bytes(path.read_bytes()[:size])

    return cut


def _another_network(folder):
    module = tf.Module()
    module.table = tf.Variable([[1.0]], name="table")
    tf.saved_model.save(module, folder)


def _another_module(folder):
    prefix = folder / "variables" / "variables"
    bundle.save(prefix, {"module/dense/kernel": tf.zeros([2, 2])})


def _graph_of_nothing(folder):
    prefix = folder / "variables" / "variables"
    tensors = bundle.read(prefix, bundle.read_names_and_shapes(prefix))
    bundle.save(prefix, tensors | {release.OBJECT_GRAPH: b"\xff\xff"})


@pytest.mark.parametrize(
    "damage, message",
    [
        (_cut("saved_model.pb", 5000), "is not a complete SavedModel"),
        (_cut("saved_model.pb", 0), "is not a complete SavedModel"),
        (_cut("variables/variables.index", 900), "is damaged or truncated"),
        (_cut("variables/variables.data-00000-of-00001", 70000), "is damaged or trunc"),
        (_cut("assets/vocab.txt", 3), "\\[UNK\\], .* missing"),
        (_without_variables, "SavedModel without variables"),
        (_another_network, "has no complete BERT encoder"),
        (_another_module, "complete BERT encoder: .* for example, module/dense/kernel"),
        (_graph_of_nothing, "its object graph is damaged"),
    ],
)
def test_what_cannot_be_read_is_reported_in_one_line(unpacked, damage, message):
    folder = unpacked("encoder")
    damage(folder)
    with pytest.raises(ValueError, match=message) as error:
        source = saved_model.open_source(folder)
        list(source.read_each(source.shapes))
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)
