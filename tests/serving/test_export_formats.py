"""Exports in other formats: with ids instead of text, and run by their own runtimes."""

import pathlib
import runpy
import sys

import numpy as np
import pytest

import bert_tf
from bert_tf.serving import export
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors

TEXTS = ["the rain in spain", "Crème brûlée", "中文"]
PACKAGES = {
    "litert": ("ai_edge_litert",),
    "onnx": ("tf2onnx", "onnxruntime"),
    "openvino": ("openvino",),
}
# The converters of LiteRT and ONNX.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def need(export_format, dtype="float32"):
    for package in PACKAGES[export_format]:
        pytest.importorskip(package, reason=f"pip install {package}")
    if (export_format, dtype) == ("openvino", "int8"):
        pytest.importorskip("nncf", reason="pip install nncf")


def run_litert(path, features):
    from ai_edge_litert import interpreter

    runner = interpreter.Interpreter(model_path=path).get_signature_runner()
    used = runner.get_input_details()
    return runner(**{name: features[name] for name in used})


def run_onnx(path, features):
    import onnxruntime

    session = onnxruntime.InferenceSession(path)
    used = [one.name for one in session.get_inputs()]
    names = [one.name for one in session.get_outputs()]
    outputs = session.run(names, {name: features[name] for name in used})
    return dict(zip(names, outputs, strict=True))


def run_openvino(path, features):
    import openvino

    model = openvino.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    used = [one.any_name for one in model.inputs]
    outputs = model({name: features[name] for name in used})
    return {one.any_name: outputs[one] for one in model.outputs}


RUN = {"litert": run_litert, "onnx": run_onnx, "openvino": run_openvino}


def packed(folder, pairs=None):
    """Returns the features of TEXTS, tokenized with the files of an export."""
    tokenizer = bert_tf.FullTokenizer(folder)
    return bert_tf.pack(tokenizer, TEXTS, texts_b=pairs, max_seq_length=16)


@pytest.mark.parametrize("export_format", RUN)
def test_every_runtime_gives_the_answers_of_the_run(
    single_run, tmp_path, export_format
):
    need(export_format)
    folder = export.export_saved_model(
        single_run, str(tmp_path / "1"), format=export_format
    )
    path = f"{folder}/{export.FILES[export_format]}"
    answers = RUN[export_format](path, packed(folder))
    expected = predictors.load(single_run).predict(TEXTS)
    np.testing.assert_allclose(
        answers["probabilities"],
        [list(one["probabilities"].values()) for one in expected],
        atol=1e-5,
    )
    names = {one.name for one in (tmp_path / "1").iterdir()}
    assert names >= {"vocab.txt", "bert_config.json", "task.json", "labels.txt"}


@pytest.mark.parametrize(
    "export_format, dtype",
    [
        ("litert", "float16"),
        ("litert", "int8"),
        ("onnx", "int8"),
        ("openvino", "float16"),
        ("openvino", "int8"),
    ],
)
def test_smaller_weights_change_answers_little(
    single_run, tmp_path, export_format, dtype
):
    need(export_format, dtype)
    sizes, answers = [], []
    for kept_dtype in ("float32", dtype):
        folder = export.export_saved_model(
            single_run,
            str(tmp_path / kept_dtype / "1"),
            format=export_format,
            dtype=kept_dtype,
        )
        path = tmp_path / kept_dtype / "1" / export.FILES[export_format]
        weights = path.with_suffix(".bin")
        sizes.append((weights if weights.exists() else path).stat().st_size)
        answers.append(RUN[export_format](str(path), packed(folder))["probabilities"])
    if export_format == "onnx":  # Operations outweigh the weights of a tiny model.
        import onnx

        weights = onnx.load(str(path)).graph.initializer
        assert onnx.TensorProto.INT8 in {one.data_type for one in weights}
    else:
        assert sizes[1] < sizes[0]
    assert 0 < np.abs(answers[0] - answers[1]).max() < 0.1


def test_the_example_in_the_documentation_runs(single_run, tmp_path, monkeypatch):
    need("onnx")
    monkeypatch.chdir(tmp_path)
    export.export_saved_model(single_run, "models/topics/1", format="onnx")
    root = pathlib.Path(__file__).resolve().parents[2]
    names = runpy.run_path(str(root / "docs" / "export_examples" / "ids.py"))
    [expected] = predictors.load(single_run).predict(names["texts"])
    assert names["answer"] == pytest.approx(expected["probabilities"], abs=1e-5)


@pytest.mark.parametrize("kind", ["squad", "choice", "tags"])
def test_every_task_returns_what_its_ids_signature_returns(request, tmp_path, kind):
    need("openvino")
    run_dir = request.getfixturevalue(f"{kind}_run")
    folder = export.export_saved_model(run_dir, str(tmp_path / "1"), format="openvino")
    features = packed(folder, TEXTS[::-1])
    answers = run_openvino(f"{folder}/model.xml", features)
    model = predictors.load(run_dir).model
    is_choice = kind == "choice"
    expected = {"scores": model.scores(features)} if is_choice else model(features)
    for name, values in answers.items():
        np.testing.assert_allclose(values, expected[name], atol=1e-5)


def test_versions_of_one_format_follow_each_other(single_run, tmp_path):
    need("openvino")
    options = serving_options.ExportSavedModelOptions(
        output_dir=single_run, export_dir=str(tmp_path / "topics"), format="openvino"
    )
    assert "The OpenVINO model is in" in export.run(options)
    assert f"{tmp_path}/topics/2 (" in export.run(options)
    other = serving_options.ExportSavedModelOptions(
        output_dir=single_run, export_dir=str(tmp_path / "topics")
    )
    with pytest.raises(ValueError, match="topics/1 is not empty"):
        export.run(other)


def test_a_model_that_fills_masks_is_refused(masks_run, tmp_path):
    with pytest.raises(ValueError, match=r"candidates for a \[MASK\] are text"):
        export.export_saved_model(masks_run, str(tmp_path / "1"), format="litert")
    assert not (tmp_path / "1").exists()


def test_a_missing_package_is_named_before_any_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(ImportError, match=r"tf2onnx, .* not .* 'bert_tf\[onnx\]'"):
        export.export_saved_model("no run", str(tmp_path / "1"), format="onnx")
