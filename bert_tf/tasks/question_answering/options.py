"""Options of run_squad and evaluate_squad."""

import dataclasses
import os

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

NUM_SPECIAL = 3  # [CLS] and two [SEP] in every window.


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSquadOptions(fine_tuning_options.TaskOptions):
    """Trains, evaluates and applies a model that finds answers in a text.

    The data are files in the format of SQuAD 1.1 or 2.0.
    """

    best_metric: str = option(
        "eval_f1",
        help="Score that picks the checkpoint kept in best/. The lowest if its name "
        "ends in loss, else the highest.",
    )
    eval_batch_size: int = option(
        8,
        minimum=1,
        help="Windows a step, over all replicas, of evaluations without --do_predict.",
    )
    train_file: tuple[str, ...] = option(
        (),
        help="SQuAD JSON to train on. Several: one after the other, each with its own "
        "steps and rates, starting from what the one before learned.",
    )
    predict_file: str | None = option(
        None, help="SQuAD JSON to answer; with its answers, to score them (--do_eval)."
    )
    do_lower_case: bool = option(
        True, help="True for uncased checkpoints, False for cased ones."
    )
    max_seq_length: int = option(
        384,
        minimum=5,
        help="The most word pieces of a window with [CLS] and two [SEP]; a longer "
        "context is read in several windows.",
    )
    doc_stride: int = option(
        128, minimum=1, help="Word pieces from one window's start to the next's."
    )
    max_query_length: int = option(
        64, minimum=1, help="The most word pieces of a question; the rest is dropped."
    )
    do_predict: bool = option(
        False, help="Answer the questions of predict_file with the last checkpoint."
    )
    predict_batch_size: int = option(8, minimum=1, help="Windows a step there.")
    num_train_epochs: float = option(
        3.0, minimum=0.0, help="How often training goes over each train_file."
    )
    n_best_size: int = option(
        20, minimum=1, help="Answers a question in nbest_predictions.json."
    )
    max_answer_length: int = option(
        30, minimum=1, help="The most word pieces of an answer."
    )
    version_2_with_negative: bool = option(
        False, help="There may be questions without an answer, as in SQuAD 2.0."
    )
    null_score_diff_threshold: float = option(
        0.0,
        help="There is no answer where null_odds.json has more. For SQuAD 2.0: "
        "evaluate_squad finds the best one, usually between -5 and -1.",
    )
    bilstm_on_top: bool = option(
        False,
        help="Put a newly initialized BiLSTM between encoder and head, as in Table 5 "
        "of the paper for left-to-right models.",
    )
    ensemble: tuple[str, ...] = option(
        (), help="Folders of trained runs; predict with the mean of their n-best lists."
    )
    verbose_logging: bool = option(
        False, help="Log every answer whose letters are not found again in its text."
    )

    def __post_init__(self):
        super().__post_init__()
        if self.do_train or self.dry_run:
            self._require("train_file", "Training")
        if self.do_predict:
            self._require("predict_file", "Predicting")
        if self.do_eval or self.eval_every_steps:
            self._require("predict_file", "Evaluating")
        if self.max_seq_length <= self.max_query_length + NUM_SPECIAL:
            raise options_module.OptionError(
                f"--max_seq_length={self.max_seq_length} has no room for a question "
                f"(--max_query_length={self.max_query_length}), {NUM_SPECIAL} special "
                "word pieces and a piece of the context; raise it, or lower "
                "--max_query_length."
            )
        if self.ensemble:
            self._check_ensemble()

    @property
    def stage_dirs(self) -> tuple[str, ...]:
        """The runs of all files but the last, each started from the one before."""
        return tuple(
            os.path.join(self.output_dir, f"stage_{number}")
            for number in range(1, len(self.train_file))
        )

    def _check_ensemble(self):
        for name in ("do_train", "dry_run", "init_checkpoint"):
            if getattr(self, name):
                raise options_module.OptionError(
                    f"--{name} does not go with --ensemble, whose runs are trained."
                )
        if len(set(self.ensemble)) != len(self.ensemble):
            raise options_module.OptionError(
                f"--ensemble={','.join(self.ensemble)}: expected every folder once."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateSquadOptions(options_module.Options):
    """Scores predictions as the official scripts of SQuAD 1.1 and 2.0 do."""

    data_file: str = option(help="SQuAD JSON with the true answers.")
    predictions_file: str = option(help="JSON: {id: answer}, as run_squad writes it.")
    null_odds_file: str | None = option(
        None,
        help="JSON: {id: how likely there is no answer}, for SQuAD 2.0; adds the best "
        "thresholds and what would be reached with them.",
    )
    output_file: str | None = option(None, help="JSON file to write the scores to.")

    def __post_init__(self):
        super().__post_init__()
        if self.output_file is not None:
            read = {
                name: [getattr(self, name)]
                for name in ("data_file", "predictions_file", "null_odds_file")
                if getattr(self, name)
            }
            options_module.check_not_overwritten(
                {"output_file": [self.output_file]}, read
            )
