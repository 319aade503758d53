"""The content of the model card of a question answering run."""

import dataclasses
from collections.abc import Mapping

from bert_tf.fine_tuning import model_card
from bert_tf.tasks.question_answering import answers as answers_module
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import run_setup
from bert_tf.tasks.question_answering import scores as question_answering_scores
from bert_tf.training import training_facts

PIPELINE_TAG = "question-answering"


def card_of(
    options: question_answering_options.RunSquadOptions,
    setup: run_setup.RunSetup,
    *,
    training: training_facts.TrainingFacts | None = None,
    results: Mapping[str, float] | None = None,
    answers: answers_module.Answers | None = None,
) -> model_card.Card:
    """Returns the parts of a run's model card that are known so far.

    Args:
        options: the options of the run.
        setup: its data and task.
        training: facts about the training, once it is finished.
        results: the content of eval_results.txt, once it is written.
        answers: the answers that were scored for it.

    Raises:
        OSError: a data file or the card of an earlier stage cannot be read.
    """
    data: list[model_card.DataFile] = []
    if setup.train_examples:
        # The card covers all stages, so the base model is that of the first one.
        stages = [model_card.read_facts(path) for path in options.stage_dirs]
        for stage in filter(None, stages):
            data += [
                model_card.DataFile(**file)
                for file in stage["data"]
                if file["part"] == "train"
            ]
        if stages and stages[0]:
            start = stages[0]["base_model"]
            options = dataclasses.replace(options, init_checkpoint=start)
        path = run_setup.train_paths(options)[-1]
        data.append(setup.data_file("train", path, len(setup.train_examples)))
    if answers is not None:
        path, examples = answers.squad_file.path, answers.squad_file.examples
        data.append(setup.data_file("dev", path, len(examples)))
    evaluated = None
    if results is not None and answers is not None:
        evaluated = model_card.Evaluated(
            results=results,
            data_set=setup.data_sets["dev"],
            wrong=_wrong_examples(answers),
            num_examples=len(answers.predictions),
        )
    no_answer = ", or that there is none" if setup.task.threshold is not None else ""
    return model_card.Card(
        pipeline_tag=PIPELINE_TAG,
        summary=f"Finds the answer to a question in a text{no_answer}.",
        options=options,
        data=tuple(data),
        training=training,
        evaluated=evaluated,
    )


def _wrong_examples(answers):
    """Returns the questions whose answer is not an exact match."""
    texts = answers.texts
    found = question_answering_scores.question_scores(answers.squad_file, texts)
    return [
        model_card.WrongExample(
            text=f"{example.question_text} ||| {example.context.text}",
            expected=example.answers[0].text if example.answers else "",
            predicted=texts[example.qas_id],
        )
        for example in answers.squad_file.examples
        if not found[example.qas_id].exact
    ]
