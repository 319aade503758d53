"""What tests of checkpoints share: a released folder, and fine-tuned checkpoints."""

import json
import shutil

import numpy as np
import pytest


@pytest.fixture
def released_folder(copy_release, tmp_path):
    """A folder as the released zips have it."""
    return copy_release(tmp_path / "uncased_L-2_H-16_A-2")


@pytest.fixture
def released(golden):
    """Folder of a checkpoint that the 2018 code wrote."""
    return golden / "model"


@pytest.fixture
def fine_tuned(golden, tmp_path):
    """Writes the recorded encoder with a head of one's own: fine_tuned(kind)."""
    from bert_tf.checkpoints.release import bundle

    def write(kind, *, num_labels=3, task=None):
        folder = tmp_path / kind
        folder.mkdir()
        for path in (golden / "model" / "bert_config.json", golden / "vocab.txt"):
            shutil.copy(path, folder)
        prefix = golden / "model" / "bert_model.ckpt"
        wanted = [n for n in bundle.read_names_and_shapes(prefix) if "bert/" in n]
        tensors = bundle.read(prefix, wanted)
        scope = "cls/squad/" if kind == "question_answering" else ""
        rows = {"question_answering": 2, "multiple_choice": 1}.get(kind, num_labels)
        rng = np.random.default_rng(1)
        tensors |= {
            f"{scope}output_weights": rng.normal(size=(rows, 16)).astype("float32"),
            f"{scope}output_bias": rng.normal(size=rows).astype("float32"),
        }
        bundle.save(folder / "model.ckpt-7", tensors)
        if task is not None:
            (folder / "task.json").write_text(json.dumps(task))
        return folder / "model.ckpt-7"

    return write
