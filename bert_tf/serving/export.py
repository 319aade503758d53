"""Exports a run folder as a SavedModel that needs only TensorFlow and TF Text."""

import contextlib
import dataclasses
import importlib
import json
import os
import shutil
import tempfile

import tensorflow as tf

from bert_tf import files
from bert_tf import locks
from bert_tf import progress as progress_module
from bert_tf.checkpoints import companion_files
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from bert_tf.serving import tasks

# A SavedModel's folder for files that its graph does not read.
EXTRA_FOLDER = "assets.extra"
# The file that loaders look for. Where folders cannot be renamed, it is written last.
MODEL_FILE = "saved_model.pb"
RUN_FILES = (
    companion_files.TASK_FILE,
    companion_files.VOCAB_FILE,
    companion_files.CONFIG_FILE,
)


def export_saved_model(
    output_dir: str,
    export_dir: str,
    *,
    top_k: int | None = None,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Writes the model of a training run as a SavedModel, completely or not at all.

    `serving.tasks` names the module of its signatures. `assets.extra/` contains the
    run's task.json, vocab.txt and bert_config.json.

    Args:
        output_dir: `output_dir` of the training run.
        export_dir: the folder to write. TensorFlow Serving expects a version number as
            its last part: `models/topics/1`.
        top_k: candidates per [MASK], for a pretraining run. None: 5.
        progress: called after each stage; see `bert_tf.progress`.

    Returns:
        `export_dir`.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: `output_dir` contains no trained model, `export_dir` is not empty,
            or `top_k` is given for another task.
    """
    with _locked(export_dir):
        _, task = predictors.run_of(output_dir)
        if task is None:
            raise ValueError(
                f"{output_dir} contains no task.json of a training run; expected the "
                "output_dir of one."
            )
        if top_k is not None and task != predictors.PRETRAINING:
            raise ValueError(
                f"--top_k={top_k}, but {output_dir} is a run of the task {task!r}, "
                "which fills no masks; omit the flag."
            )
        model = predictors.load(output_dir)
        progress("export", 1, 3)
        if task == predictors.PRETRAINING:
            return _write(model, _described(model, top_k), export_dir, progress)
        kept = {}
        for name in RUN_FILES:
            with files.open_file(os.path.join(output_dir, name), "rb") as file:
                kept[name] = file.read()
        return _write(model, kept, export_dir, progress)


def export_checkpoint(
    options: serving_options.ExportSavedModelOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Writes the SavedModel of an encoder, a ranker or a masked-word model.

    Args:
        options: options with an init_checkpoint.
        progress: called after each stage; see `bert_tf.progress`.

    Returns:
        The folder that was written.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the checkpoint has no such model, or the folder is not empty.
    """
    with _locked(options.export_dir):
        # Needs the folder of retrieval, which runs of other tasks do without.
        from bert_tf.serving import exported_checkpoint

        model = exported_checkpoint.load(options, progress=progress)
        progress("export", 1, 3)
        kept = _described(model, options.top_k)
        return _write(model, kept, options.export_dir, progress)


def _described(model, top_k):
    """Returns the extra files of a model that has no task.json of its own.

    Sets the number of candidates, if it is given.
    """
    if top_k is not None:
        model.task = dataclasses.replace(model.task, top_k=top_k)
    task = companion_files.with_fingerprint(model.task.to_dict(), model.vocabulary)
    kept = {
        companion_files.TASK_FILE: json.dumps(task, indent=2) + "\n",
        companion_files.VOCAB_FILE: "".join(
            f"{token}\n" for token in model.vocabulary.tokens
        ),
        companion_files.CONFIG_FILE: model.config.to_json_string(),
    }
    return {name: text.encode() for name, text in kept.items()}


def _write(model, kept, export_dir, progress):
    """Writes the SavedModel of a model, with extra files."""
    signatures = importlib.import_module(tasks.TASKS[model.task.KIND].signatures)
    module = signatures.create(model)
    with _complete_or_absent_folder(export_dir) as folder:
        _save(module, folder, export_dir)
        progress("export", 2, 3)
        for name, content in kept.items():
            target = os.path.join(folder, EXTRA_FOLDER, name)
            with files.complete_or_absent(target, "wb") as file:
                file.write(content)
    progress("export", 3, 3)
    return export_dir


def run(
    options: serving_options.ExportSavedModelOptions,
    *,
    progress: progress_module.Progress = progress_module.silent,
) -> str:
    """Exports a run or a checkpoint; returns a report."""
    if options.output_dir is None:
        export_checkpoint(options, progress=progress)
    else:
        export_saved_model(
            options.output_dir,
            options.export_dir,
            top_k=options.top_k,
            progress=progress,
        )
    names = ", ".join(files.list_folder(options.export_dir))
    return f"The SavedModel is in {options.export_dir} ({names})."


def _save(module, folder, export_dir):
    try:
        tf.saved_model.save(module, folder, signatures=module.functions)
    except tf.errors.OpError as error:
        reason = files.reason_of(error)
        raise OSError(f"{export_dir} cannot be written: {reason}.") from error


@contextlib.contextmanager
def _locked(export_dir):
    """Locks the folder to write, and removes leftovers of killed exports to it."""
    _check_absent(export_dir)
    with locks.output_file(export_dir.rstrip("/"), flag="export_dir"):
        _check_absent(export_dir)  # Another export may have finished.
        yield


def _check_absent(export_dir):
    if files.exists(export_dir) and not files.is_folder(export_dir):
        raise NotADirectoryError(f"{export_dir} is a file; expected a new folder.")
    if files.is_folder(export_dir) and files.list_folder(export_dir):
        raise ValueError(
            f"{export_dir} is not empty; expected a new folder. An export never "
            "overwrites another one."
        )


@contextlib.contextmanager
def _complete_or_absent_folder(path):
    """Yields a local folder that becomes `path` when the block ends without error."""
    if files.is_remote(path):
        with tempfile.TemporaryDirectory() as temporary:
            yield temporary
            _copy_model_file_last(temporary, path)
        return
    path = os.path.abspath(path)
    temporary = files.temporary_path(path)
    try:
        files.make_folders(temporary)
        yield temporary
        if files.is_folder(path):
            os.rmdir(path)  # Fails if another export has filled it meanwhile.
        files.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _copy_model_file_last(source, target):
    names = [
        os.path.relpath(os.path.join(folder, name), source)
        for folder, _, names in os.walk(source)
        for name in names
    ]
    for name in sorted(names, key=lambda name: (name == MODEL_FILE, name)):
        with open(os.path.join(source, name), "rb") as file:
            content = file.read()
        with files.complete_or_absent(f"{target.rstrip('/')}/{name}", "wb") as file:
            file.write(content)
