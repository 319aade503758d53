"""Versions, and the files that start a server with them."""

import json
import re

import pytest
import tensorflow as tf
import yaml

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.serving import server_files


@pytest.fixture(scope="module")
def model(single_run, tmp_path_factory):
    """Folder of a model that was exported twice."""
    folder = tmp_path_factory.mktemp("models") / "Topics_2"
    for _ in range(2):
        options = serving_options.ExportSavedModelOptions(
            output_dir=single_run,
            export_dir=str(folder),
            max_batch_tokens=64,
            max_text_bytes=40,
            server_files=True,
        )
        report = export.run(options)
    assert "/Topics_2/2 (" in report
    assert report.endswith("Files for a model server are in " + f"{folder}/server.")
    return folder


def test_each_export_is_the_next_version_and_keeps_its_limits(model):
    assert sorted(path.name for path in model.iterdir()) == ["1", "2", "server"]
    latest = client.open_saved_model(str(model))
    assert len(latest.ask(text=["the rain"])[0]["probabilities"]) == 3
    function = tf.saved_model.load(str(model / "2")).signatures["serving_default"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="longer than 40 bytes"):
        function(text=tf.constant(["x" * 41]))
    # 64 positions, rows of at most 16.
    batching = (model / "server" / "batching_parameters.txt").read_text()
    assert "max_batch_size { value: 4 }" in batching


def test_files_of_a_server_name_the_model_and_its_versions(model):
    texts = {path.name: path.read_text() for path in (model / "server").iterdir()}
    assert not [name for name, text in texts.items() if "{{" in text]
    config = texts["models.config"]
    assert 'base_path: "/models/Topics_2"' in config
    assert 'version_labels { key: "stable" value: 1 }' in config
    assert 'version_labels { key: "canary" value: 2 }' in config
    command = re.search(r"CMD (\[.*\])", texts["Dockerfile"], re.DOTALL)[1]
    arguments = json.loads(command.replace("\\\n", ""))
    compose = yaml.safe_load(texts["compose.yaml"])["services"]["topics-2"]
    assert compose["command"] == arguments
    deployment, service = yaml.safe_load_all(texts["kubernetes.yaml"])
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == arguments
    for probe in ("startupProbe", "readinessProbe"):
        path = container[probe]["httpGet"]["path"]
        assert path == "/v1/models/Topics_2/metadata"
    assert service["spec"]["selector"] == {"app": "topics-2"}
    # The files that the arguments name exist where the server sees them.
    for argument in arguments:
        if "/models/" in argument:
            path = argument.partition("=")[2].removeprefix("/models/Topics_2/")
            assert (model / path).exists(), argument


@pytest.mark.parametrize("export_dir", ["exports", "exports/my model/1"])
def test_a_model_without_a_name_gets_no_files(export_dir):
    with pytest.raises(ValueError, match="is not the folder of a version"):
        server_files.check_layout(export_dir)


def test_a_server_reads_the_model_config(model):
    model_server_config_pb2 = pytest.importorskip(
        "tensorflow_serving.config.model_server_config_pb2",
        reason="needs tensorflow-serving-api",
    )
    from google.protobuf import text_format

    text = (model / "server" / "models.config").read_text()
    parsed = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    [config] = parsed.model_config_list.config
    assert list(config.model_version_policy.specific.versions) == [1, 2]
    assert dict(config.version_labels) == {"stable": 1, "canary": 2}
