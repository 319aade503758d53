import pytest

from bert_tf import options as options_module
from bert_tf.tasks.token_classification import options as token_classification_options

MODEL = {"bert_config_file": "c.json", "vocab_file": "v.txt", "output_dir": "out"}
TRAIN = {**MODEL, "data_dir": "conll", "do_train": True}


@pytest.mark.parametrize(
    "values, message",
    [
        ({"vocab_file": None}, "Training without --init_checkpoint needs --vocab_file"),
        ({"labels": "O"}, "--labels=O: expected two or more different names"),
        ({"true_case": True}, "--true_case has no effect on lowercased text"),
    ],
)
def test_options_that_do_not_fit_are_refused(values, message):
    with pytest.raises(options_module.OptionError, match=message):
        token_classification_options.RunNerOptions(**TRAIN | values)
