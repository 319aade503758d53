"""Folders of sentence-transformers, as two of its versions wrote them."""

import dataclasses
import pathlib

import pytest

import bert_tf
from bert_tf.checkpoints import hugging_face
from bert_tf.checkpoints.conversion import options as conversion_options
from bert_tf.checkpoints.conversion import workflow as conversion_workflow
from tests import ring
from tests.checkpoints.foreign import sentence_transformers_folders as folders

VERSIONS = (folders.NEW, folders.OLD)
BI_ENCODERS = [
    (version, name)
    for version in VERSIONS
    for name in folders.variants(version)
    if name.split("_")[0] in ("cls", "mean", "max") and name != "mean_sqrt"
]


def opened(tmp_path, name, version=folders.NEW):
    return hugging_face.open_source(folders.create(tmp_path / name, name, version))


@pytest.mark.parametrize("version, name", BI_ENCODERS)
def test_pooling_normalization_and_length_are_read(tmp_path, version, name):
    text = opened(tmp_path, name, version).text
    pooling, *unit, length = name.split("_")
    found = (text.pooling, text.normalize, text.max_seq_length, text.do_lower_case)
    assert found == (pooling, unit == ["unit"], int(length), True)
    assert text.similarity == "cosine"
    text = opened(tmp_path, "default_prompt", version).text
    assert text.prompts["query"] == "query: "
    assert (text.default_prompt_name, text.similarity) == ("query", "dot")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name, activation, length",
    [
        ("ranker_sigmoid", "sigmoid", 24),
        ("ranker_identity", "identity", 24),
        ("ranker_default", "sigmoid", 24),  # Of one output.
        ("ranker_short", "identity", 12),
    ],
)
def test_one_output_is_a_score_with_its_activation(
    tmp_path, version, name, activation, length
):
    source = opened(tmp_path, name, version)
    assert (source.head.label_kind, source.head.num_labels) == ("regression", 1)
    assert source.text.output_activation == activation
    assert source.text.max_seq_length == length


@pytest.mark.parametrize(
    "changes, label_kind, activation",
    [
        ({}, "regression", "sigmoid"),  # The default of transformers, too.
        ({"problem_type": "regression"}, "regression", None),  # The number itself.
        (
            {"sbert_ce_default_activation_function": "torch.nn.Identity"},
            "regression",
            "identity",  # As version 3 and older wrote it.
        ),
    ],
)
def test_without_files_of_the_library_the_configuration_decides(
    tmp_path, change, changes, label_kind, activation
):
    folder = folders.create(tmp_path / "ranker", "ranker_identity", folders.OLD)
    change(pathlib.Path(folder) / "config.json", sentence_transformers=None, **changes)
    source = hugging_face.open_source(folder)
    assert source.head.label_kind == label_kind
    assert source.text.output_activation == activation


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "name, message",
    [
        ("dense", "modules.json has the modules .*Pooling, .*Dense, which bert_tf"),
        ("layer_norm", "modules.json has the modules .*LayerNorm, which"),
        ("layer_weights", "modules.json has the modules .*WeightedLayerPooling, .*"),
        ("last_token", "1_Pooling/config.json has the pooling .*lasttoken.*, which"),
        ("mean_sqrt", "1_Pooling/config.json has the pooling .*mean_sqrt_len_tokens"),
        ("two_poolings", r"has the pooling \['mean', 'max'\], which"),
        ("without_prompt", "has a pooling that leaves out the prompt, which"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path, version, name, message):
    with pytest.raises(ValueError, match=message) as raised:
        opened(tmp_path, name, version)
    assert "without modules.json and module folders, it is" in str(raised.value)


POOLING, NORMALIZE = "1_Pooling/config.json", "2_Normalize/config.json"
OPTIONS = "sentence_bert_config.json"
SETTINGS = "config_sentence_transformers.json"
TANH = "torch.nn.modules.activation.Tanh"


@pytest.mark.parametrize(
    "name, file, values, message",
    [
        ("cls_unit_9", POOLING, {"embedding_dimension": 9}, "for vectors of 9 numbers"),
        ("cls_unit_9", NORMALIZE, {"module_input_name": "tokens"}, "has module_input"),
        ("cls_unit_9", OPTIONS, {"query_length": 7}, "has query_length 7"),
        ("cls_unit_9", OPTIONS, {"transformer_task": "fill-mask"}, "'fill-mask'"),
        ("cls_unit_9", OPTIONS, {"max_seq_length": 2}, "of max_seq_length: 2"),
        ("cls_unit_9", SETTINGS, {"model_type": "Sparse"}, "the model_type 'Sparse'"),
        ("cls_unit_9", SETTINGS, {"default_prompt_name": "x"}, "one of the prompts"),
        ("cls_unit_9", SETTINGS, {"similarity_fn_name": "l2"}, "of similarity: 'l2'"),
        ("ranker_identity", SETTINGS, {"activation_fn": TANH}, "the activation '.*Tan"),
    ],
)
def test_a_setting_that_is_not_understood_is_refused(
    tmp_path, change, name, file, values, message
):
    folder = pathlib.Path(folders.create(tmp_path / "folder", name))
    change(folder / file, **values)
    with pytest.raises(ValueError, match=message):
        hugging_face.open_source(folder)


@pytest.mark.parametrize(
    "cased, casing",
    [(False, (True, None)), (True, (True, False))],  # A cased one keeps the accents.
)
def test_text_that_is_lowercased_before_the_tokenizer_is_lowercased_here(
    tmp_path, change, cased, casing
):
    folder = pathlib.Path(folders.create(tmp_path / "folder", "mean_9", folders.OLD))
    change(folder / OPTIONS, do_lower_case=True)
    if cased:
        change(folder / "tokenizer_config.json", do_lower_case=False)
    text = hugging_face.open_source(folder).text
    assert (text.do_lower_case, text.strip_accents) == casing


@pytest.mark.parametrize(
    "version, name",
    [
        (folders.NEW, "cls_unit_9"),
        (folders.NEW, "mean_24"),
        ring.slow(folders.NEW, "max_unit_24"),
        ring.slow(folders.NEW, "default_prompt"),
        (folders.OLD, "max_9"),
    ],
)
def test_the_vectors_are_those_of_the_library(tmp_path, version, name):
    folder = folders.create(tmp_path / name, name, version)
    texts = folders.texts(version)["texts"]
    vectors = bert_tf.embed(folder, texts)
    expected = folders.expected(name, version)
    assert folders.least_cosine(vectors, expected) > 0.999999
    assert abs(vectors - expected).max() < 1e-5 * abs(expected).max()


def test_the_library_computes_the_same_with_what_is_written(check_there):
    _, lines = check_there("check_sentence_transformers.py")
    assert len(lines) == 32


def test_a_format_that_cannot_say_it_needs_a_flag(tmp_path):
    pytest.importorskip("keras_hub")
    options = conversion_options.ConvertCheckpointOptions(
        source=folders.create(tmp_path / "source", "max_unit_9"),
        target=str(tmp_path / "target"),
        target_format="keras_hub",
        allow_activation_change=True,
    )
    with pytest.raises(ValueError, match=r"keras_hub cannot store .*pooling, norm"):
        conversion_workflow.convert(options)
    assert not (tmp_path / "target").exists()
    report = conversion_workflow.run(
        dataclasses.replace(options, drop_text_encoding=True)
    )
    assert "the target does not record pooling, as allowed" in report


def test_the_encoder_of_a_ranker_has_no_activation(tmp_path):
    options = conversion_options.ConvertCheckpointOptions(
        source=folders.create(tmp_path / "source", "ranker_short"),
        target=str(tmp_path / "target"),
        target_format="hugging_face",
        head="encoder",
    )
    written = conversion_workflow.convert(options).written
    assert (written.head.kind, written.text.output_activation) == ("encoder", None)


@pytest.mark.parametrize(
    "lost, message",
    [
        ("modules.json", "has the module 1_Pooling, but no modules.json"),
        (POOLING, "1_Pooling/config.json"),
    ],
)
def test_a_folder_without_a_file_is_refused(tmp_path, lost, message):
    folder = pathlib.Path(folders.create(tmp_path / "folder", "cls_unit_9"))
    (folder / lost).unlink()
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        hugging_face.open_source(folder)
