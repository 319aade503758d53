import pytest

from bert_tf import options as options_module
from bert_tf.tasks.token_classification import options as token_classification_options

MODEL = {"bert_config_file": "c.json", "vocab_file": "v.txt", "output_dir": "out"}
TRAIN = {**MODEL, "data_dir": "conll", "do_train": True}


def test_the_defaults_are_those_of_the_releases_tools():
    record = token_classification_options.RunNerOptions(**TRAIN)
    expected = {
        "init_checkpoint": None,
        "do_lower_case": True,
        "max_seq_length": 128,
        "train_batch_size": 32,
        "eval_batch_size": 8,
        "predict_batch_size": 8,
        "learning_rate": 5e-5,
        "num_train_epochs": 3.0,
        "warmup_proportion": 0.1,
        "stride": 64,
        "feature_based": None,
    }
    assert {name: getattr(record, name) for name in expected} == expected


@pytest.mark.parametrize(
    "values, message",
    [
        ({"vocab_file": None}, "Training without --init_checkpoint needs --vocab_file"),
        ({"labels": "O"}, "--labels=O: expected at least two different tags"),
        ({"labels": "O,B-X,O"}, "expected at least two different tags"),
        ({"doc_stride": 127}, "--doc_stride=127: expected at most 126"),
        ({"true_case": True}, "--true_case has no effect on lowercased text"),
        (
            {"feature_based": "last", "frozen_layers": "2"},
            "--feature_based=last freezes the whole encoder",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(values, message):
    with pytest.raises(options_module.OptionError, match=message):
        token_classification_options.RunNerOptions(**TRAIN | values)
