"""Versions, and the files that start a server with them."""

import json
import re
import shutil

import pytest
import yaml

from bert_tf.serving import client
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.serving import server_files
from bert_tf.serving import warm_up


@pytest.fixture(scope="module")
def model(single_run, single_export, tmp_path_factory):
    """Folder of a model of two versions."""
    folder = tmp_path_factory.mktemp("models") / "Topics_2"
    shutil.copytree(single_export, folder / "1")
    options = serving_options.ExportSavedModelOptions(
        output_dir=single_run, export_dir=str(folder), server_files=True
    )
    report = export.run(options)
    assert "/Topics_2/2 (" in report
    assert report.endswith("Files for a model server are in " + f"{folder}/server.")
    return folder


def test_each_export_is_the_next_version(model):
    assert sorted(path.name for path in model.iterdir()) == ["1", "2", "server"]
    latest = client.open_saved_model(str(model))
    assert len(latest.ask(text=["the rain"])[0]["probabilities"]) == 3


def test_a_server_accepts_the_warm_up_and_the_calls_of_the_client(model):
    batching = (model / "server" / "batching_parameters.txt").read_text()
    max_batch_size = int(re.search(r"max_batch_size { value: (\d+) }", batching)[1])
    assert max_batch_size >= max(warm_up.BATCH_SIZES)
    assert max_batch_size >= serving_options.QUERIES_PER_CALL


def test_files_of_a_server_name_the_model_and_its_versions(model):
    texts = {path.name: path.read_text() for path in (model / "server").iterdir()}
    assert not [name for name, text in texts.items() if "$" in text]
    arguments = json.loads(re.search(r"CMD (\[.*\])", texts["Dockerfile"])[1])
    compose = yaml.safe_load(texts["compose.yaml"])["services"]["topics-2"]
    assert compose["command"] == arguments
    assert all(port.startswith("127.0.0.1:") for port in compose["ports"])
    assert not compose["image"].endswith(("serving", ":latest"))
    deployment, service = yaml.safe_load_all(texts["kubernetes.yaml"])
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["runAsNonRoot"]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["args"] == arguments
    for probe in ("startupProbe", "readinessProbe"):
        path = container[probe]["httpGet"]["path"]
        assert path == "/v1/models/Topics_2/metadata"
    assert service["spec"]["selector"] == {"app": "topics-2"}
    # What the arguments name exists where the server sees it.
    for argument in arguments:
        if "/models/" in argument:
            path = argument.partition("=")[2].removeprefix("/models/Topics_2")
            assert (model / path.lstrip("/")).exists(), argument


@pytest.mark.parametrize(
    "name, expected",
    [
        ("20newsgroups", "model-20newsgroups"),  # A service starts with a letter.
        ("a" * 62 + "_b", "a" * 62),  # At most 63 characters, the last no hyphen.
    ],
)
def test_the_names_in_kubernetes_are_dns_labels(tmp_path, name, expected):
    folder = tmp_path / name / "1"
    for path in ("variables/index", "assets.extra/task.json"):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(json.dumps({"max_seq_length": 512}))
    server_files.write(str(folder))
    text = (tmp_path / name / "server" / "kubernetes.yaml").read_text()
    deployment, service = yaml.safe_load_all(text)
    for one in (deployment, service):
        assert one["metadata"]["name"] == expected


@pytest.mark.parametrize("export_dir", ["exports", "exports/my model/1"])
def test_a_model_without_a_name_gets_no_files(export_dir):
    with pytest.raises(ValueError, match="is not the folder of a version"):
        export.export_saved_model("no run", export_dir, server_files=True)
