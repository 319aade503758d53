"""Runs and exports that the tests of this folder share; no training is needed."""

import pytest

from bert_tf.checkpoints import names
from bert_tf.checkpoints import rotation
from bert_tf.classification import model as model_module
from bert_tf.classification import options
from bert_tf.classification import task
from bert_tf.modeling import config as modeling_config
from bert_tf.serving import export
from bert_tf.tokenization import vocabulary
from bert_tf.training import run_folder

MAX_SEQ_LENGTH = 16


@pytest.fixture(scope="session")
def single_run(golden, tmp_path_factory):
    """Folder of a run with three classes of single texts."""
    folder = str(tmp_path_factory.mktemp("runs") / "single")
    return write_run(folder, golden, labels=("rain", "snow", "été"))


@pytest.fixture(scope="session")
def pair_run(golden, tmp_path_factory):
    """Folder of a run with two classes of pairs of texts."""
    folder = str(tmp_path_factory.mktemp("runs") / "pair")
    return write_run(folder, golden, labels=("0", "1"), text_b_column="text_b")


@pytest.fixture(scope="session")
def single_export(single_run, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("exports") / "single" / "1")
    return export.export_saved_model(single_run, folder)


@pytest.fixture(scope="session")
def pair_export(pair_run, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("exports") / "pair")
    return export.export_saved_model(pair_run, folder)


def write_run(folder, golden, *, labels, text_b_column=None):
    config = modeling_config.BertConfig.from_json_file(
        str(golden / "model" / "bert_config.json")
    )
    # Weights ten times as large as they start, so that classes differ clearly.
    model = model_module.BertClassifier(config, num_labels=len(labels))
    model.build()
    model.output_weights.assign(10 * model.output_weights)
    rotation.write_step(
        folder,
        7,
        {n: v.numpy() for n, v in names.checkpoint_variables(model).items()},
        keep_max=1,
    )
    run_folder.RunFolder(folder).write_settings(
        task=task.Task(
            labels=labels,
            max_seq_length=MAX_SEQ_LENGTH,
            do_lower_case=True,
            text_b_column=text_b_column,
        ).to_dict(),
        config=config,
        vocabulary=vocabulary.Vocabulary.load(str(golden / "vocab.txt")),
        options=options.RunClassifierOptions(
            output_dir=folder, do_predict=True, predict_file="x.tsv"
        ),
    )
    return folder
