"""TensorFlow datasets by name, prepared from records that the test makes."""

import numpy as np
import pytest

from bert_tf import options as options_module
from bert_tf.tasks.classification import task as classification_task


@pytest.fixture(scope="module")
def tfds():
    return pytest.importorskip("tensorflow_datasets")


@pytest.fixture(scope="module")
def prepared(tfds, tmp_path_factory):
    """Returns the folder with datasets of a name, of some features and splits."""
    folder = tmp_path_factory.mktemp("tfds")

    def prepare(name, features, splits):
        base, _, config = name.partition("/")

        class Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
            name = base
            VERSION = tfds.core.Version("2.0.0")  # As that of the real GLUE.
            BUILDER_CONFIGS = (tfds.core.BuilderConfig(name=config or "default"),)
            pkg_dir_path = folder

            def _info(self):
                return tfds.core.DatasetInfo(
                    builder=self,
                    features=tfds.features.FeaturesDict(features),
                    disable_shuffling=True,
                )

            def _split_generators(self, dl_manager):
                return {
                    split: iter(list(enumerate(rows))) for split, rows in splits.items()
                }

            def _generate_examples(self, rows):
                yield from rows

        Builder(data_dir=folder, config=config or None).download_and_prepare()
        return str(folder)

    return prepare


@pytest.fixture
def named(weather_options, tmp_path):
    def create(name, data_dir, **values):
        files = dict.fromkeys(("train_file", "eval_file", "predict_file"))
        given = {"tfds_name": name, "data_dir": data_dir, "train_batch_size": 4}
        return weather_options(tmp_path / "run", **given | files | values)

    return create


@pytest.fixture(scope="module")
def glue_datasets(tfds, prepared):
    text = tfds.features.Text()
    label = tfds.features.ClassLabel(names=["entailment", "neutral", "contradiction"])
    row = {"premise": "a", "hypothesis": "b", "label": 1, "idx": 7}
    splits = ("train", "validation_matched", "test_matched")
    prepared(
        "glue/mnli",
        {"premise": text, "hypothesis": text, "label": label, "idx": np.int32},
        {split: [row] for split in splits},
    )
    score = {"sentence1": "a", "sentence2": "b", "label": 2.5, "idx": 0}
    return prepared(
        "glue/stsb",
        {"sentence1": text, "sentence2": text, "label": np.float32, "idx": np.int32},
        {split: [score] for split in ("train", "validation", "test")},
    )


def processor(options):
    return classification_task.Classification(options).processor


def test_glue_by_its_name_has_its_columns_sets_and_scores(named, glue_datasets):
    mnli = processor(named("glue/mnli", glue_datasets, do_eval=True))
    assert mnli.task_name == "mnli"
    [row] = mnli.get_dev_examples("")
    assert (row.text_a, row.text_b, row.label) == ("a", "b", "neutral")
    assert row.guid == "7"
    stsb = processor(named("glue/stsb", glue_datasets))
    assert (stsb.task_name, stsb.columns.label_kind) == ("sts-b", "regression")
    [row] = stsb.get_train_examples("")
    assert row.label == "2.5"


def test_data_without_the_columns_is_refused(tfds, prepared, named):
    text = tfds.features.Text()
    row = {"premise": "a", "hypothesis": "b", "label": 2.5}
    features = {"premise": text, "hypothesis": text, "label": np.float32}
    options = named("pairs", prepared("pairs", features, {"train": [row]}))
    with pytest.raises(
        ValueError, match=r"has no column text; .* are hypothesis, label, premise"
    ):
        _ = processor(options)
    with pytest.raises(ValueError, match="no_such: the data set does not exist"):
        _ = processor(named("no_such", options.data_dir))
    with pytest.raises(options_module.OptionError, match="--eval_file cannot be comb"):
        named("pairs", options.data_dir, eval_file="a")
