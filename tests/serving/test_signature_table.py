"""The table of signatures in docs/signatures.md is what the code exports."""

import pathlib

import pytest

from bert_tf.fine_tuning import tasks
from bert_tf.serving import options as serving_options
from bert_tf.serving import predictors
from bert_tf.tasks.classification import predictions as classification_predictions
from bert_tf.tasks.retrieval import features

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "signatures.md"
HEADER = "| model | signature | takes | returns |"
# Names of axes whose size depends on the request.
AXES = {
    "input_ids": "S",
    "input_mask": "S",
    "segment_ids": "S",
    "start_logits": "S",
    "end_logits": "S",
    "endings": "E",
    "words": "W",
    "tags": "W",
    "starts": "W",
    "ends": "W",
    "tokens": "M",
    "positions": "M",
}
SIZES = {"max_seq_length": 16, "do_lower_case": True}


@pytest.fixture(scope="module")
def modules(request, write_model, tmp_path_factory):
    """By the name of a model: its signatures."""
    folder = tmp_path_factory.mktemp("runs")
    ranker = {"max_query_length": 8, **SIZES}
    vectors = {"model": "bi_encoder", "pooling": "mean", "temperature": 0.05}
    several = {"labels": ("a", "b", "c"), "label_kind": "multi_label"}
    written = {
        "classifier, several labels per text": classification_predictions.Record(
            **several, **SIZES
        ),
        "regression": classification_predictions.Record(
            labels=(), label_kind="regression", **SIZES
        ),
        "encoder, bi-encoder": features.Record(**vectors, **ranker),
        "cross-encoder": features.Record(model="cross_encoder", **ranker),
    }
    runs = {
        "classifier": "single_run",
        "classifier of pairs": "pair_run",
        "multiple choice": "choice_run",
        "question answering": "squad_run",
        "token classification": "tag_run",
        "masked words": "mask_run",
    }
    found = {name: request.getfixturevalue(run) for name, run in runs.items()}
    for name, task in written.items():
        run_dir = str(folder / name)
        found[name] = write_model(run_dir, task.create_model, task)
    return {name: created(run_dir) for name, run_dir in found.items()}


def created(run_dir):
    predictor = predictors.load(run_dir)
    return tasks.signatures(
        predictor.task.KIND, predictor, serving_options.DEFAULT_LIMITS
    )


def test_the_table_of_signatures_is_that_of_the_code(modules):
    lines = [HEADER, "|---|---|---|---|"]
    for model, module in modules.items():
        for name, function in module.functions.items():
            inputs = {spec.name: spec for spec in function.input_signature}
            outputs = function.get_concrete_function().structured_outputs
            letters = letters_of(module)
            lines.append(
                f"| {model} | `{name}` | {described(inputs, letters, model)} | "
                f"{described(outputs, letters, model)} |"
            )
    table = "\n".join(lines)
    text = DOCS.read_text(encoding="utf-8")
    start = text.index(HEADER)
    assert text[start:].split("\n\n")[0].strip() == table, f"Expected:\n{table}"


def letters_of(module):
    """Returns the name of each size that depends on the model."""
    predictor = module.predictor
    letters = {predictor.config.hidden_size: "H", 5: "K"}
    if labels := getattr(predictor.task, "labels", ()):
        letters = {len(labels): "C"}
    return letters


def described(specs, letters, model):
    # Of outputs whose names do not say it.
    default = {"multiple choice": "E", "masked words": "M"}.get(model, "S")
    parts = []
    for name, spec in specs.items():
        first, *others = spec.shape.as_list()
        assert first is None
        varying = AXES.get(name, default)
        axes = [
            "B",
            *(letters.get(size, str(size)) if size else varying for size in others),
        ]
        parts.append(f"`{name}` {spec.dtype.name} [{', '.join(axes)}]")
    return ", ".join(parts)
