"""Combinations of flags that export and query refuse before any work."""

import pytest

from bert_tf import options as options_module
from bert_tf.serving import options as serving_options

RUN = {"output_dir": "run", "export_dir": "new"}
CHECKPOINT = {"init_checkpoint": "checkpoint", "export_dir": "new"}
FOLDER = {"export_dir": "exported"}


@pytest.mark.parametrize(
    "values, message",
    [
        (FOLDER, "either --output_dir .* or --init_checkpoint"),
        (RUN | CHECKPOINT, "either --output_dir"),
        (RUN | {"pooling": "max"}, "--pooling needs --init_checkp"),
        (RUN | {"dtype": "int8"}, "--dtype=int8 .* --format=saved_model"),
        (RUN | {"format": "onnx", "dtype": "float16"}, "one of float32, int8"),
        (RUN | {"format": "litert", "dtype": "bfloat16"}, "float32, float16, int8"),
        (RUN | {"format": "litert", "top_k": 3}, "--top_k needs --format"),
        (CHECKPOINT | {"head": "masked_lm", "format": "litert"}, "--head=masked_lm"),
        (CHECKPOINT | {"head": "masked_lm", "pooling": "cls"}, "--pooling=cls has"),
        (CHECKPOINT | {"head": "multiple_choice", "pooling": "cls"}, "--head=mult"),
        (CHECKPOINT | {"top_k": 3}, "--top_k=3 needs --head=masked_lm"),
        (
            CHECKPOINT | {"head": "token_classification", "text_pairs": True},
            "needs --head=class",
        ),
    ],
)
def test_flags_of_an_export_that_do_not_fit_are_refused(values, message):
    with pytest.raises(options_module.OptionError, match=message):
        serving_options.ExportSavedModelOptions(**values)


@pytest.mark.parametrize(
    "values, message",
    [
        (FOLDER, "either --text, or --question with"),
        (FOLDER | {"text": "a", "question": "b"}, "either --text, or"),
        (FOLDER | {"question": "a"}, "one --context for each --question"),
        (FOLDER | {"text": "a", "context": "b"}, "for each --question"),
        (FOLDER | {"text": "-"}, "standard input; pass .* as --input_file"),
        (
            FOLDER | {"question": ("a", "b", "c"), "context": ("d", "e")},
            r"one --context for each --question \(3\), got 2",
        ),
        (
            FOLDER | {"text": ("a", "b"), "text_b": "b"},
            r"one --text_b for each --text \(2\), got 1",
        ),
        ({"text": "a"}, "either --export_dir or --server"),
        (FOLDER | {"text": "a", "server": "y"}, "either --export_dir or"),
        (FOLDER | {"text": "a", "timeout_seconds": 3.0}, "--timeout_seconds needs"),
        (FOLDER | {"text": "a", "header": "A: b"}, "--header needs --server"),
    ],
)
def test_flags_of_a_query_that_do_not_fit_are_refused(values, message):
    with pytest.raises(options_module.OptionError, match=message):
        serving_options.QuerySavedModelOptions(**values)
