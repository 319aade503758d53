"""The model card of a classification run."""

import collections
from collections.abc import Mapping
from collections.abc import Sequence

from bert_tf.fine_tuning import model_card
from bert_tf.tasks.classification import evaluation as evaluation_module
from bert_tf.tasks.classification import examples as examples_module
from bert_tf.tasks.classification import label_kinds
from bert_tf.tasks.classification import options as classification_options
from bert_tf.tasks.classification import run_setup
from bert_tf.tasks.classification import task as task_module
from bert_tf.training import training_facts

PIPELINE_TAG = "text-classification"


def card_of(
    options: classification_options.RunClassifierOptions,
    setup: run_setup.RunSetup,
    examples: Mapping[str, Sequence[examples_module.InputExample]],
    *,
    training: training_facts.TrainingFacts | None = None,
    training_data: Sequence[str] = (),
    results: Mapping[str, float] | None = None,
    evaluated: Mapping[str, evaluation_module.Evaluated] | None = None,
) -> model_card.Card:
    """Returns the parts of the card that this call can fill in.

    Args:
        options: of the run.
        setup: of the run.
        examples: the examples read, by set ("train", "dev", "test").
        training: facts about the training, if the run trained.
        training_data: sentences about the labels and lengths of the training texts.
        results: contents of eval_results.txt, if the run was evaluated.
        evaluated: results of each development set, if the run was evaluated.

    Raises:
        OSError: a data file cannot be read.
    """
    return model_card.Card(
        pipeline_tag=PIPELINE_TAG,
        summary=_summary(setup.task),
        labels=setup.task.labels,
        languages=tuple(setup.processor.get_languages()),
        options=options,
        data=_data(options, setup, examples),
        training=training,
        training_data=tuple(training_data),
        evaluated=_evaluated(setup, examples, results, evaluated),
    )


def _evaluated(setup, examples, results, evaluated):
    if results is None or not evaluated:
        return None
    return model_card.Evaluated(
        results=results,
        data_set=setup.data_sets["dev"],
        wrong=[
            example
            for part, found in evaluated.items()
            for example in _wrong_examples(examples[part], found)
        ],
        num_examples=sum(len(found.predicted) for found in evaluated.values()),
    )


def _summary(task: task_module.Task) -> str:
    """Returns one sentence that says what the model does."""
    texts = "a pair of texts" if task.is_pair else "a text"
    of_task = f" ({task.task_name.upper()})" if task.task_name else ""
    if task.label_kind == label_kinds.REGRESSION:
        return (
            f"Predicts a number for {texts}{of_task}. An answer counts as wrong if it "
            "differs from the label by more than the labels' standard deviation."
        )
    if task.label_kind == label_kinds.MULTI_LABEL:
        return (
            f"Assigns {texts} to any number of {len(task.labels)} classes{of_task}. A "
            f"class is predicted if its probability is at least {task.threshold:g}."
        )
    return f"Assigns {texts} to one of {len(task.labels)} classes{of_task}."


def _data(options, setup, examples):
    paths = setup.processor.get_files(options.data_dir)
    if not paths:
        return _named_data(setup, examples)
    evaluated = {part: rows for part, rows in examples.items() if part != "train"}
    counts: dict[str, int] = {}
    for part, rows in evaluated.items():
        # One file may contain several sets: XNLI has all languages in one file.
        name = part if part in paths else part.split("_")[0]
        counts[name] = counts.get(name, 0) + len(rows)
    data = [
        setup.data_file(part, paths[part], count)
        for part, count in counts.items()
        if part in paths
    ]
    trained = _training_data(options, setup, examples.get("train", ()))
    return (*trained, *data)


def _training_data(options, setup, rows):
    """Returns one record per training file. XNLI has one file per language."""
    if not rows:
        return []
    paths = setup.processor.get_train_files(options.data_dir)
    if len(paths) < 2:
        return [setup.data_file("train", path, len(rows)) for path in paths]
    counts = collections.Counter(row.place.rpartition(":")[0] for row in rows)
    return [setup.data_file("train", path, counts[path]) for path in paths]


def _named_data(setup, examples):
    names = {part: setup.processor.get_set_name(part) for part in examples}
    return tuple(
        model_card.DataFile(
            part=part, name=names[part], num_examples=len(rows), sha256=None
        )
        for part, rows in examples.items()
        if names[part] is not None
    )


def _wrong_examples(examples, found):
    return [
        model_card.WrongExample(
            text=" ||| ".join(filter(None, example.texts)),
            expected=example.label,
            predicted=predicted,
        )
        for example, predicted, is_correct in zip(
            examples, found.predicted, found.is_correct, strict=True
        )
        if not is_correct
    ]
