"""Exports a run or a checkpoint, completely or not at all.

A SavedModel needs only TensorFlow and TF Text. The other formats are for runtimes that
have no operations for text. Their models take what the signature `ids` of a SavedModel
takes, and return what it returns; a client tokenizes with the vocabulary stored next to
the model. Padding needs the mask 0: the models do not recognize the padding of a
server, and do not divide large batches.
"""

import contextlib
import dataclasses
import json
import logging
import os
from typing import Any

import keras
import tensorflow as tf

from bert_tf import files
from bert_tf import locks
from bert_tf import machine
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import starting_point
from bert_tf.fine_tuning import backends
from bert_tf.fine_tuning import predictor as fine_tuning_predictor
from bert_tf.fine_tuning import run_report
from bert_tf.fine_tuning import tasks
from bert_tf.modeling import input_features
from bert_tf.modeling import kernels
from bert_tf.modeling.kernels import inference
from bert_tf.serving import export_layout
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from bert_tf.serving import signatures

LABELS_FILE = "labels.txt"  # One per line, in the order of the model's outputs.
LITERT, ONNX, OPENVINO = serving_options.ID_FORMATS
# The model's file in the folder of an export; OpenVINO adds model.bin.
FILES = {LITERT: "model.tflite", ONNX: "model.onnx", OPENVINO: "model.xml"}
_FLOAT16 = "float16"
_KERAS_OF_LITERT = (3, 13)  # The first that exports LiteRT.
_NAMES = {
    LITERT: "LiteRT model",
    ONNX: "ONNX model",
    OPENVINO: "OpenVINO model",
}
_MAX_SEQ_LENGTH = 128  # Of an encoder, if neither flag nor checkpoint sets it.


def export_saved_model(output_dir: str, export_dir: str, **options: Any) -> str:
    """Writes the model of a training run, completely or not at all.

    `fine_tuning.tasks` names the module of its signatures. `assets.extra/` contains the
    run's task.json, vocab.txt, bert_config.json and model card, the labels, and
    requests to warm up a server.

    Args:
        output_dir: `output_dir` of the training run.
        export_dir: the folder to write. TensorFlow Serving expects a version number as
            its last part: `models/topics/1`. `export_layout.next_folder` chooses one.
        **options: other fields of `ExportSavedModelOptions`.

    Returns:
        `export_dir`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: `output_dir` contains no trained model, `export_dir` is not empty,
            or an option does not fit the model or the format.
        ImportError: the format needs a package that is not installed.
    """
    _export(
        serving_options.ExportSavedModelOptions(
            output_dir=output_dir, export_dir=export_dir, **options
        )
    )
    return export_dir


def _export(options):
    """Writes the model of a run or a checkpoint."""
    _check_packages(options.format, options.dtype)
    is_saved_model = options.format == serving_options.SAVED_MODEL
    dtype = options.dtype if is_saved_model else "float32"
    with locks.output_file(options.export_dir.rstrip("/"), flag="export_dir"):
        _check_absent(options.export_dir)
        if options.output_dir is None:
            model = _load_checkpoint(options, dtype)
        else:
            _check_run(options)
            model = predictors.load(options.output_dir, dtype=dtype)
        progress_module.report("export", 1, 3)
        if options.top_k is not None:
            model.task = dataclasses.replace(model.task, top_k=options.top_k)
        _write(model, _extra_files(model, options.output_dir), options)


def _check_run(options):
    output_dir = options.output_dir
    _, task = predictors.find_run(output_dir)
    if task is None:
        raise ValueError(
            f"{output_dir} contains no task.json of a training run; expected the "
            "output_dir of one."
        )
    if options.top_k is not None and task != predictors.PRETRAINING:
        raise ValueError(
            f"--top_k={options.top_k}, but {output_dir} is a run of the task {task!r}, "
            "which fills no masks; omit the flag."
        )
    if task == predictors.PRETRAINING and options.format in FILES:
        raise ValueError(
            f"{output_dir} is a pretraining run, whose candidates for a [MASK] are "
            f"text, which {options.format} lacks; export a saved_model, or a "
            "BertPretrainer with its method `export`."
        )


def _load_checkpoint(options, dtype):
    """Returns the predictor of a checkpoint in any format.

    A checkpoint without a ranker's head is a bi-encoder, which treats queries and
    passages alike unless the checkpoint has prompts for them.
    """
    start = starting_point.find_from_options(options)
    path = str(options.init_checkpoint)
    settings = fine_tuning_predictor.LoadSettings(
        start=start,
        has_task_file=False,
        dtype=backends.policy_of(dtype),
        pooling=options.pooling,
        max_seq_length=options.max_seq_length,
    )
    is_encoder = options.head in (None, kinds.Head.ENCODER)
    lengths = (settings.max_seq_length, settings.source.encoder_text.max_seq_length)
    if is_encoder and lengths == (None, None):
        settings = dataclasses.replace(settings, max_seq_length=_MAX_SEQ_LENGTH)
    if options.head is None:
        return tasks.load(tasks.RETRIEVAL, path, settings)
    model = predictors.load_start(
        path, start, settings, head=options.head, argument="--head"
    )
    if options.text_pairs:
        model.task = dataclasses.replace(model.task, text_b_column="text_b")
    return model


def _extra_files(model, output_dir):
    """Returns the files that describe a model, and the model card of its run."""
    task = companion_files.with_fingerprint(model.task.to_dict(), model.vocabulary)
    texts = {
        companion_files.TASK_FILE: json.dumps(task, indent=2) + "\n",
        companion_files.VOCAB_FILE: "".join(
            f"{token}\n" for token in model.vocabulary.tokens
        ),
        companion_files.CONFIG_FILE: model.config.to_json_string(),
    }
    if labels := getattr(model.task, "labels", ()):
        texts[LABELS_FILE] = "".join(f"{label}\n" for label in labels)
    card = f"{output_dir}/{run_report.CARD_FILE}"
    if output_dir is not None and files.exists(card):
        texts[run_report.CARD_FILE] = "\n".join(files.read_lines(card)) + "\n"
    return {name: text.encode() for name, text in texts.items()}


@kernels.use(inference.Inference())
def _write(model, extra, options):
    """Writes a model with extra files."""
    module = tasks.signatures(model.task.KIND, model)
    is_saved_model = options.format == serving_options.SAVED_MODEL
    # What loaders look for. Where folders cannot be renamed, it is written last.
    model_files = (export_layout.MODEL_FILE, *FILES.values())
    with locks.complete_or_absent_folder(
        options.export_dir.rstrip("/"), completes=model_files.__contains__
    ) as folder:
        extra_folder = folder
        if is_saved_model:
            _save(module, folder, options.export_dir)
            extra_folder = os.path.join(folder, export_layout.EXTRA_FOLDER)
        else:
            _write_id_model(module, folder, options.format, options.dtype)
        progress_module.report("export", 2, 3)
        for name, content in extra.items():
            path = os.path.join(extra_folder, name)
            with files.complete_or_absent(path, "wb") as file:
                file.write(content)
        if is_saved_model:
            export_layout.write_warm_up(module, folder)
    progress_module.report("export", 3, 3)


def run(options: serving_options.ExportSavedModelOptions) -> str:
    """Exports a run or a checkpoint; returns a report.

    Raises:
        OSError, ValueError, ImportError: see `export_saved_model`.
    """
    with contextlib.ExitStack() as stack:
        model_dir = options.export_dir.rstrip("/")
        model_file = FILES.get(options.format, export_layout.MODEL_FILE)
        if export_layout.next_folder(model_dir, model_file) != model_dir:
            # Two exports must not choose the same version.
            stack.enter_context(locks.output_file(model_dir, flag="export_dir"))
        export_dir = export_layout.next_folder(model_dir, model_file)
        _export(dataclasses.replace(options, export_dir=export_dir))
        names = ", ".join(files.list_folder(export_dir))
        kind = _NAMES.get(options.format, "SavedModel")
        report = f"The {kind} is in {export_dir} ({names})."
        if kind == "SavedModel":
            served = os.path.dirname(os.path.abspath(export_dir))
            report += f"\nServe it: bert_tf serve --export_dir={served}"
        return report


def _save(module, folder, export_dir):
    try:
        tf.saved_model.save(module, folder, signatures=module.functions)
    except tf.errors.OpError as error:
        reason = files.reason_of(error)
        raise OSError(f"{export_dir} cannot be written: {reason}.") from error


def _check_absent(export_dir):
    if files.exists(export_dir) and not files.is_folder(export_dir):
        raise NotADirectoryError(f"{export_dir} is a file; expected a new folder.")
    if files.is_folder(export_dir) and files.list_folder(export_dir):
        raise ValueError(
            f"{export_dir} is not empty; expected a new folder. An export never "
            "overwrites another one."
        )


def _check_packages(export_format, dtype):
    """Raises ImportError, before any work, if a package that is needed is missing."""
    version = tuple(map(int, keras.__version__.split(".")[:2]))
    if export_format == LITERT and version < _KERAS_OF_LITERT:
        raise ImportError(
            f"The format litert needs Keras 3.13 or newer, got {keras.__version__}; "
            "pip install --upgrade keras."
        )
    if export_format == OPENVINO:
        backends.import_package("openvino")
        if dtype == backends.INT8:
            backends.import_package("nncf")
    if export_format == ONNX:
        for module in ("tf2onnx", "onnxruntime"):
            machine.package(module, extra="onnx", needed_for="The format onnx")


def _write_id_model(module, folder, export_format, dtype):
    """Writes a model that computes in float32, with weights of the dtype."""
    path = os.path.join(folder, FILES[export_format])
    if export_format == OPENVINO:
        _write_openvino(module, path, dtype)
        return
    model = _IdsModel(module)
    signature = {
        name: keras.InputSpec(shape=(None, None), dtype="int32", name=name)
        for name in input_features.SEQUENCE
    }
    options: dict[str, Any] = {"verbose": False, "input_signature": [signature]}
    if export_format == LITERT and dtype != "float32":
        options["optimizations"] = [tf.lite.Optimize.DEFAULT]
    if export_format == LITERT and dtype == _FLOAT16:
        options["target_spec"] = {"supported_types": [tf.float16]}
    model.export(path, format=export_format, **options)
    if export_format == ONNX and dtype == backends.INT8:
        _quantize_onnx(path)


class _IdsModel(keras.Model):
    """The `ids` signature as a Keras model, for Keras's exporters."""

    def __init__(self, module: signatures.TaskSignatures):
        super().__init__(name="bert_tf")
        self.model = module.predictor.model
        self._outputs = module.outputs
        self.built = True

    def call(self, features: Any, training: bool = False) -> Any:
        """Returns the outputs for features."""
        return self._outputs(features)


def _quantize_onnx(path):
    """Replaces a model by one with int8 weights."""
    from onnxruntime import quantization

    exact = f"{path}.float32"
    os.replace(path, exact)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # It advises preprocessing that changes no result.
    try:
        quantization.quantize_dynamic(
            exact,
            path,
            per_channel=True,  # With one scale per tensor, large weights blur others.
            weight_type=quantization.QuantType.QInt8,
        )
    finally:
        root.setLevel(level)
        os.remove(exact)


def _write_openvino(module, path, dtype):
    graph = tf.function(
        backends.with_constant_weights(module.outputs, module.predictor.model),
        autograph=False,
    )
    model = backends.converted(graph, input_features.SEQUENCE)
    if dtype == backends.INT8:
        model = backends.with_int8_weights(model)
    backends.import_package("openvino").save_model(
        model, path, compress_to_fp16=dtype == _FLOAT16
    )
