"""Runs and exports that the tests of this folder share; no training is needed."""

import dataclasses

import pytest
import tensorflow as tf

from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints.release import bundle
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
from bert_tf.tasks.question_answering import predictions as predictions_module
from bert_tf.tasks.token_classification import features as tag_features
from bert_tf.tokenization import vocabulary as vocabulary_module
from bert_tf.training import run_folder

SHARED = {"max_seq_length": 16, "do_lower_case": True}
TAGS = ("O", "B-PER", "I-PER", "B-ORT", "I-ORT")
# By kind: the function from a BertConfig to the model, and the task.
RUNS = {
    "single": (
        lambda config: classifier.BertClassifier(config, num_labels=3),
        classification_predictions.Record(labels=("rain", "snow", "été"), **SHARED),
    ),
    "pair": (
        lambda config: classifier.BertClassifier(config, num_labels=2),
        classification_predictions.Record(
            labels=("0", "1"), text_b_column="text_b", **SHARED
        ),
    ),
    "choice": (
        modeling_multiple_choice.BertMultipleChoice,
        choice_task.Record(num_endings=3, **SHARED),
    ),
    "squad": (
        span_predictor.BertSpanPredictor,
        predictions_module.Record(
            max_seq_length=24,
            doc_stride=5,
            max_query_length=8,
            n_best_size=20,
            max_answer_length=9,
            do_lower_case=True,
            version_2_with_negative=False,
            null_score_diff_threshold=0.0,
        ),
    ),
    "tags": (
        lambda config: token_classifier.BertTokenClassifier(
            config, num_labels=len(TAGS)
        ),
        tag_features.Record(labels=TAGS, doc_stride=5, tag_scheme="iob2", **SHARED),
    ),
    "masks": (pretrainer.BertPretrainer, mask_predictor.Task(**SHARED)),
}


@pytest.fixture(autouse=True, scope="module")
def graphs_are_run_as_they_are():
    """Skips TensorFlow's optimizer, which takes seconds for each graph of texts.

    The processes that tests start run the same graphs with it, as a server does.
    """
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


@pytest.fixture(scope="session")
def write_model(golden):
    """Writes a run: write_model(folder, a function from a BertConfig, a task).

    The model was never trained.
    """
    config = config_module.BertConfig.from_json_file(
        str(golden / "model" / "bert_config.json")
    )
    vocabulary = vocabulary_module.Vocabulary.load(str(golden / "vocab.txt"))

    def write(folder, create_model, task):
        model = create_model(config)
        model.build()
        # A head's weights are ten times as large as they start, so that answers differ.
        for weights in model.weights:
            if weights.path.endswith("output_weights"):
                weights.assign(10 * weights)
        variables = checkpoint_names.checkpoint_variables(model)
        bundle.write_parts(folder, 7, {n: v.numpy() for n, v in variables.items()})
        bundle.commit(folder, 7, keep_max=1)
        settings = run_folder.Settings(
            task=task.to_dict(),
            config=config,
            vocabulary=vocabulary,
            options=classification_options.RunClassifierOptions(
                output_dir=folder, do_predict=True, predict_file="x.tsv"
            ),
        )
        run_folder.RunFolder(folder).write_settings(settings)
        return folder

    return write


@pytest.fixture(scope="session")
def write_run(write_model):
    """Writes a run of `RUNS`; keywords replace parts of its task."""

    def write(kind, folder, **values):
        create_model, task = RUNS[kind]
        task = dataclasses.replace(task, **values)
        return write_model(str(folder), create_model, task)

    return write


class Written(dict):
    """By kind: what a function of the kind writes; it is written when it is asked."""

    def __init__(self, write):
        super().__init__()
        self._write = write

    def __missing__(self, kind):
        self[kind] = self._write(kind)
        return self[kind]


@pytest.fixture(scope="session")
def runs(write_run, tmp_path_factory):
    """By kind: the folder of a run."""
    folder = tmp_path_factory.mktemp("runs")
    return Written(lambda kind: write_run(kind, folder / kind))


@pytest.fixture(scope="session")
def exports(runs, tmp_path_factory):
    """By kind: the folder of a run, and the folder of its SavedModel."""
    folder = tmp_path_factory.mktemp("exports")

    def write(kind):
        export_dir = str(folder / kind / "1")
        return runs[kind], export.export_saved_model(runs[kind], export_dir)

    return Written(write)


@pytest.fixture(scope="session")
def signatures(exports):
    """By kind: the signatures of the SavedModel in memory."""
    return Written(lambda kind: tf.saved_model.load(exports[kind][1]).signatures)


def run_of(kind):
    """Returns the fixture KIND_run, the folder of a run."""
    return pytest.fixture(lambda runs: runs[kind], scope="session", name=f"{kind}_run")


single_run, pair_run, choice_run, squad_run, tags_run, masks_run = map(run_of, RUNS)


@pytest.fixture(scope="session")
def single_export(exports):
    return exports["single"][1]
