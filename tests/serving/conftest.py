"""Runs and exports that the tests of this folder share; no training is needed."""

import pytest

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import rotation
from bert_tf.modeling import classifier
from bert_tf.modeling import config as config_module
from bert_tf.modeling import multiple_choice as modeling_multiple_choice
from bert_tf.modeling import pretrainer
from bert_tf.modeling import span_predictor
from bert_tf.modeling import token_classifier
from bert_tf.pretraining import predictor as mask_predictor
from bert_tf.serving import export
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.multiple_choice import task as choice_task
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.token_classification import features as tag_features
from bert_tf.tokenization import vocabulary as vocabulary_module
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


@pytest.fixture(scope="session")
def write_squad_run(golden):
    """Writes a run of question answering; keywords replace parts of its task."""

    def write(folder, **values):
        sizes = {"max_seq_length": 24, "doc_stride": 5, "max_query_length": 8}
        rules = {"n_best_size": 20, "max_answer_length": 9}
        task = {
            "do_lower_case": True,
            "version_2_with_negative": False,
            "null_score_diff_threshold": 0.0,
        }
        return write_task(
            folder,
            golden,
            span_predictor.BertSpanPredictor(config_of(golden)),
            question_answering_predictions.Record(**task | sizes | rules | values),
        )

    return write


@pytest.fixture(scope="session")
def squad_run(write_squad_run, tmp_path_factory):
    """Folder of a run of SQuAD 1.1."""
    return write_squad_run(str(tmp_path_factory.mktemp("runs") / "squad"))


@pytest.fixture(scope="session")
def write_model(golden):
    """Writes a run: write_model(folder, a function from a BertConfig, a task)."""

    def write(folder, create_model, task):
        return write_task(folder, golden, create_model(config_of(golden)), task)

    return write


@pytest.fixture(scope="session")
def write_tag_run(golden):
    """Writes a run that tags names; keywords replace parts of its task."""

    def write(folder, **values):
        labels = ("O", "B-PER", "I-PER", "B-ORT", "I-ORT")
        task = {"max_seq_length": MAX_SEQ_LENGTH, "doc_stride": 5}
        task |= {"labels": labels, "tag_scheme": "iob2", "do_lower_case": True}
        return write_task(
            folder,
            golden,
            token_classifier.BertTokenClassifier(
                config_of(golden), num_labels=len(labels)
            ),
            tag_features.Record(**task | values),
        )

    return write


@pytest.fixture(scope="session")
def tag_run(write_tag_run, tmp_path_factory):
    """Folder of a run that tags names, with windows of 14 pieces."""
    return write_tag_run(str(tmp_path_factory.mktemp("runs") / "tags"))


@pytest.fixture(scope="session")
def choice_run(golden, tmp_path_factory):
    """Folder of a run with three endings per example."""
    return write_task(
        str(tmp_path_factory.mktemp("runs") / "choice"),
        golden,
        modeling_multiple_choice.BertMultipleChoice(config_of(golden)),
        choice_task.Record(
            num_endings=3, max_seq_length=MAX_SEQ_LENGTH, do_lower_case=True
        ),
    )


@pytest.fixture(scope="session")
def mask_run(golden, tmp_path_factory):
    """Folder of a pretraining run."""
    return write_task(
        str(tmp_path_factory.mktemp("runs") / "masks"),
        golden,
        pretrainer.BertPretrainer(config_of(golden)),
        mask_predictor.Task(max_seq_length=MAX_SEQ_LENGTH, do_lower_case=True),
    )


@pytest.fixture(scope="session")
def exports(request, tmp_path_factory):
    """By kind: the folder of a run, and the folder of its SavedModel."""
    found = {
        kind: [request.getfixturevalue(f"{kind}_{what}") for what in ("run", "export")]
        for kind in ("single", "pair")
    }
    for kind, run in (
        ("choice", "choice"),
        ("squad", "squad"),
        ("tags", "tag"),
        ("masks", "mask"),
    ):
        run_dir = request.getfixturevalue(f"{run}_run")
        folder = str(tmp_path_factory.mktemp("exports") / kind)
        found[kind] = (run_dir, export.export_saved_model(run_dir, folder))
    return found


def write_run(folder, golden, *, labels, text_b_column=None):
    return write_task(
        folder,
        golden,
        classifier.BertClassifier(config_of(golden), num_labels=len(labels)),
        classification_predictions.Record(
            labels=labels,
            max_seq_length=MAX_SEQ_LENGTH,
            do_lower_case=True,
            text_b_column=text_b_column,
        ),
    )


def config_of(golden):
    path = str(golden / "model" / "bert_config.json")
    return config_module.BertConfig.from_json_file(path)


def write_task(folder, golden, model, task):
    """Writes a run whose model was never trained; returns its folder."""
    model.build()
    # A head's weights are ten times as large as they start, so that answers differ.
    for weights in model.weights:
        if weights.path.endswith("output_weights"):
            weights.assign(10 * weights)
    rotation.write_parts(
        folder,
        7,
        {n: v.numpy() for n, v in checkpoint_names.checkpoint_variables(model).items()},
    )
    rotation.commit(folder, 7, keep_max=1)
    run_folder.RunFolder(folder).write_settings(
        task=task.to_dict(),
        config=config_of(golden),
        vocabulary=vocabulary_module.Vocabulary.load(str(golden / "vocab.txt")),
        options=classification_options.RunClassifierOptions(
            output_dir=folder, do_predict=True, predict_file="x.tsv"
        ),
    )
    return folder
