"""Training in stages, one per file, and ensembles of runs.

The paper trains on TriviaQA before SQuAD, and its best answers are an ensemble's
(section 4.2).
"""

import dataclasses
import logging
from typing import Any

from bert_tf import files
from bert_tf import options as options_module
from bert_tf import progress as progress_module
from bert_tf.checkpoints.release import rotation
from bert_tf.fine_tuning import run as fine_tuning_run
from bert_tf.fine_tuning import workflow as fine_tuning_workflow
from bert_tf.tasks.question_answering import examples as question_answering_examples
from bert_tf.tasks.question_answering import options as question_answering_options
from bert_tf.tasks.question_answering import (
    predictions as question_answering_predictions,
)
from bert_tf.tasks.question_answering import predictor
from bert_tf.tasks.question_answering import scores as question_answering_scores
from bert_tf.training import run_folder
from bert_tf.training import saving

logger = logging.getLogger(__name__)

# Only predicting reads these, so they may change when training is resumed.
FOR_PREDICTING = ("n_best_size", "max_answer_length", "null_score_diff_threshold")


def run(
    options: question_answering_options.RunSquadOptions,
    progress: progress_module.Progress,
) -> str:
    """Does what the options of run_squad say; returns a report."""
    if options.dry_run and len(options.train_file) > 1:
        stages = [
            (path, dataclasses.replace(options, train_file=(path,)))
            for path in options.train_file
        ]
        return "\n\n".join(
            f"{path}\n{fine_tuning_run.single_run(stage, progress)}"
            for path, stage in stages
        )
    with run_folder.locked(options):
        if options.ensemble:
            lines = [*_ensemble(options, progress)]
            return "\n".join([*lines, fine_tuning_workflow.place_line(options)])
        options = after_earlier_stages(options, progress)
        return fine_tuning_workflow.run(
            fine_tuning_run.Run(options, progress=progress), options
        )


def after_earlier_stages(options: Any, progress: progress_module.Progress) -> Any:
    """Trains all stages but the last, whose options it returns.

    Each stage is a separate run in a folder below output_dir, and the next stage starts
    from its weights. So a run that was killed resumes in the interrupted stage. A stage
    that another one has started from is not trained further.
    """
    if not options.do_train or len(options.train_file) < 2:
        return options
    if rotation.latest(options.output_dir) is None:
        # Report an error in the last file before training on the first one.
        for path in options.train_file:
            question_answering_examples.training_examples(
                question_answering_examples.read_squad(path),
                version_2_with_negative=options.version_2_with_negative,
            )
    folders = (*options.stage_dirs, options.output_dir)
    started = [n for n, d in enumerate(folders, start=1) if rotation.latest(d)]
    stages = zip(options.stage_dirs, options.train_file[:-1], strict=True)
    for number, (stage_dir, path) in enumerate(stages, start=1):
        values = {"output_dir": stage_dir, "train_file": (path,)}
        values |= dict.fromkeys(("do_eval", "do_predict", "tune_threshold"), False)
        stage = dataclasses.replace(options, **values)
        if number in started[:-1]:
            _check_finished(stage, progress)
        elif number >= max(started, default=0):
            logger.info("Stage %d of %d: %s", number, len(options.train_file), path)
            fine_tuning_run.Run(stage, progress=progress).train()
        if files.exists(stage_dir):
            options = dataclasses.replace(options, init_checkpoint=stage_dir)
    return options


def _check_finished(stage, progress):
    """Refuses settings or data other than those of a stage that is not trained again.

    The next stage has already started from its weights.
    """
    setup = fine_tuning_run.prepare(stage, progress=progress).setup
    run_folder.RunFolder(stage.output_dir).check_same_run(
        setup.config,
        stage,
        training_data=setup.data_sets["train"],
        step=saving.read_step(str(rotation.latest(stage.output_dir))),
        has_steps_left=False,
    )


def _ensemble(options, progress):
    """Answers with several trained runs together; yields the lines of the report."""
    _check_one_kind(options)
    if rotation.latest(options.output_dir) is not None:
        raise ValueError(
            f"{options.output_dir} contains a run, whose results those of the ensemble "
            "would replace; choose another --output_dir."
        )
    members = []
    for run_dir in options.ensemble:
        member = dataclasses.replace(options, output_dir=run_dir, ensemble=())
        task: Any = fine_tuning_run.Run(member, progress=progress).task
        members.append(task.predictions())
    record, data_set = task.record, task.setup.data_sets["test"]
    together = question_answering_predictions.averaged(
        members, n_best_size=record.n_best_size
    )
    folder = run_folder.RunFolder(options.output_dir)
    folder.create()
    if options.do_predict:
        name = question_answering_predictions.JSON_LINES_FILE
        paths = question_answering_predictions.write_predictions(
            options.output_dir,
            together,
            record.threshold,
            suffix=folder.suffix_of(name, data_set),
        )
        yield f"Predictions are in {', '.join(paths)}."
    if options.do_eval:
        scores = question_answering_scores.prediction_scores(
            task.squad_file, together, record.threshold
        )
        folder.write_eval_results(scores, data_set)
        yield from run_folder.score_lines(scores)
        yield from fine_tuning_workflow.other_data_lines(options.output_dir, data_set)


def _check_one_kind(options):
    first_dir, *other_dirs = options.ensemble
    first = predictor.Record.read(first_dir)
    for run_dir in other_dirs:
        other = predictor.Record.read(run_dir)
        if other.version_2_with_negative != first.version_2_with_negative:
            raise ValueError(
                f"{run_dir} and {first_dir} were not both trained with "
                "--version_2_with_negative; an ensemble needs runs of one kind."
            )
        for name in FOR_PREDICTING:
            values = [getattr(one, name) for one in (first, other)]
            is_given = options_module.is_given(getattr(options, name))
            if values[0] != values[1] and not is_given:
                raise ValueError(
                    f"{first_dir} has {name} {values[0]}, but {run_dir} has "
                    f"{values[1]}; pass --{name} to use one value for all runs."
                )
