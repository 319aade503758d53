import pytest

from bert_tf import options as options_module
from bert_tf.tasks.classification import options as classification_options

MODEL = {"bert_config_file": "c.json", "vocab_file": "v.txt", "output_dir": "out"}
TASK = {**MODEL, "task_name": "mrpc", "data_dir": "glue/MRPC"}
OWN = {**MODEL, "train_file": "a.tsv", "eval_file": "b.tsv", "predict_file": "c.tsv"}


@pytest.mark.parametrize(
    "values, message",
    [
        ({**TASK, "do_train": True, "task_name": "snli"}, "expected one of cola, mrpc"),
        ({**TASK, "do_train": True, "train_file": "a"}, "--train_file is for your own"),
        (
            {**OWN, "do_train": True, "text_column": "a", "text_b_column": "a"},
            "--text_b_column=a is also --text_column; expected another column",
        ),
        ({**OWN, "do_train": True, "data_dir": "x"}, "--data_dir requires --task_name"),
        ({**TASK, "do_eval": True, "language": "de"}, "requires --task_name=XNLI"),
        (
            {**TASK, "do_train": True, "task_name": "STS-B", "class_weights": "a=1"},
            "--class_weights is for classes, but the labels of STS-B",
        ),
        ({**TASK, "do_eval": True, "regression": True}, "--regression is for your own"),
        (
            {**OWN, "do_train": True, "regression": True, "label_separator": ","},
            "--label_separator is for classes and cannot be combined with --regression",
        ),
        (
            {**OWN, "do_train": True, "label_separator": ""},
            "--label_separator is empty",
        ),
        ({**OWN, "do_train": True, "labels": "a"}, "two or more different names"),
    ],
)
def test_options_that_do_not_fit_are_refused(values, message):
    with pytest.raises(options_module.OptionError, match=message):
        classification_options.RunClassifierOptions(**values)
