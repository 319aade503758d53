"""What TensorBoard shows of a run beside its curves.

Training writes the curves itself; see `run_folder.RunFolder.log`. This adds the
baselines as flat lines, the other plots as images, and the word piece embeddings for
the projector. It needs matplotlib, but not the package tensorboard.
"""

import os
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import files
from bert_tf.checkpoints import formats
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.training import figures
from bert_tf.training import plot_data
from bert_tf.training import run_folder

# TensorBoard's name for a run is its folder.
FOLDER = "plots"
PROJECTOR_FILE = "projector_config.pbtxt"
VECTORS_FILE = "projector_vectors.bytes"
PIECES_FILE = "projector_pieces.tsv"
MAX_PIECES = 10_000  # The projector draws a sample of this size anyway.


def write(run_dir: str) -> str:
    """Writes what TensorBoard shows of a run; returns a sentence that says so.

    Args:
        run_dir: `output_dir` of a run.

    Raises:
        OSError: a file cannot be written.
        ImportError: matplotlib is not installed.
    """
    folder = os.path.join(run_dir, FOLDER)
    if files.is_folder(folder):  # An earlier call's files would be shown, too.
        for name in files.list_folder(folder):
            files.remove(os.path.join(folder, name))
    data = plot_data.read(run_dir)
    lines = run_folder.RunFolder(run_dir).read_metrics()
    steps = sorted({int(line["step"]) for line in lines}) or [0]
    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        for name, baseline in data.get("baselines", {}).items():
            if baseline["value"] is not None:
                for step in {steps[0], steps[-1]}:
                    run_folder.write_scalar(name, baseline["value"], step)
        for name, figure in figures.from_plot_data(data).items():
            _write_image(name, figure, steps[-1])
    writer.close()
    _write_projector(folder, run_dir)
    return f"TensorBoard shows the run: tensorboard --logdir={run_dir}"


def _write_image(name, figure, step):
    """Does the same as tf.summary.image, which requires the package tensorboard."""
    width, height = (int(pixels) for pixels in figure.get_size_inches() * 120)
    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="images")
    )
    values = [str(width), str(height), figures.png(figure)]
    tf.summary.write(name, tf.constant(values), step, metadata)


def _write_projector(folder: str, run_dir: str) -> None:
    """Writes the embeddings of the first word pieces that are used."""
    source: Any = formats.open_source(run_dir)
    [(_, embeddings)] = source.read_each([checkpoint_names.WORD_EMBEDDINGS])  # [V, H]
    pieces = list(source.vocabulary.tokens) if source.vocabulary else []
    if not pieces:
        pieces = [str(number) for number in range(len(embeddings))]
    kept = [
        number
        for number, piece in enumerate(pieces[: len(embeddings)])
        if not piece.startswith("[unused")
    ][:MAX_PIECES]
    vectors = np.ascontiguousarray(embeddings[kept], np.float32)
    with files.complete_or_absent(os.path.join(folder, PIECES_FILE)) as file:
        file.writelines(f"{pieces[number]}\n" for number in kept)
    with files.open_file(os.path.join(folder, VECTORS_FILE), "wb") as file:
        file.write(vectors.tobytes())
    config = (
        'embeddings {\n  tensor_name: "word pieces"\n'
        f"  tensor_shape: {vectors.shape[0]}\n  tensor_shape: {vectors.shape[1]}\n"
        f'  tensor_path: "{VECTORS_FILE}"\n  metadata_path: "{PIECES_FILE}"\n}}\n'
    )
    with files.complete_or_absent(os.path.join(folder, PROJECTOR_FILE)) as file:
        file.write(config)
