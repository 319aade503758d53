"""Options of run_squad and evaluate_squad."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

NUM_SPECIAL = 3  # [CLS], [SEP] after the question and [SEP] after the context.


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSquadOptions(fine_tuning_options.PredictionOptions):
    """Trains, evaluates and applies a model that finds answers in a text.

    The data is JSON in the format of SQuAD 1.1 or 2.0.
    """

    TASK: ClassVar[str] = "question_answering"
    OTHER_FLAGS: ClassVar[Mapping[str, str]] = {
        "data_dir": "--train_file and --predict_file name the files of SQuAD",
        "tfds_name": "--train_file and --predict_file name the files of SQuAD",
    }

    train_file: str | None = option(
        None,
        help="SQuAD JSON file to train on.",
        on_resume=options_module.FREE,
    )
    predict_file: str | None = option(
        None,
        help="SQuAD JSON file with the questions to answer. With --do_eval, its "
        "answers are used to score the predictions.",
        on_resume=options_module.FREE,
    )
    max_seq_length: int = options_module.implicit(384)
    doc_stride: int = option(
        options_module.implicit(128),
        minimum=1,
        help="Distance between the starts of two consecutive windows, in word pieces.",
        group="model",
    )
    max_query_length: int = option(
        options_module.implicit(64),
        minimum=1,
        help="Maximum number of word pieces of a question. Longer questions are "
        "truncated.",
        group="model",
    )
    n_best_size: int = option(
        options_module.implicit(20),
        minimum=1,
        help="Number of answers per question in nbest_predictions.json. A trained run "
        "uses its own number unless this flag is given.",
        group="evaluation",
    )
    max_answer_length: int = option(
        options_module.implicit(30),
        minimum=1,
        help="Maximum length of an answer, in word pieces. A trained run uses its own "
        "length unless this flag is given.",
        group="evaluation",
    )
    version_2_with_negative: bool = option(
        False, help="Some questions have no answer, as in SQuAD 2.0."
    )
    null_score_diff_threshold: float = option(
        options_module.implicit(0.0),
        help="Predict that there is no answer if the score in null_odds.json is above "
        "this threshold, usually between -5 and -1 for SQuAD 2.0. Pass a number "
        "slightly above eval_best_f1_thresh, which an evaluation writes. A trained run "
        "uses its own threshold unless this flag is given.",
        group="evaluation",
    )
    bilstm_on_top: bool = option(
        False,
        help="Add a randomly initialized BiLSTM between the encoder and the head, as "
        "for the left-to-right models in Table 5 of the paper.",
        group="model",
    )
    verbose_logging: bool = option(
        False,
        help="Log every answer that cannot be located in the original text.",
        group="advanced",
        on_resume=options_module.FREE,
    )

    def __post_init__(self):
        super().__post_init__()
        self._check_files()
        if self.max_seq_length <= self.max_query_length + NUM_SPECIAL:
            raise options_module.OptionError(
                f"--max_seq_length={self.max_seq_length} is too short for a question "
                f"(--max_query_length={self.max_query_length}), {NUM_SPECIAL} special "
                "word pieces and at least one piece of the context; increase it, or "
                "decrease --max_query_length."
            )

    def _check_files(self):
        if self.do_train or self.dry_run:
            self._require("train_file", "Training")
        if self.do_predict:
            self._require("predict_file", "Predicting")
        if self.do_eval or self.eval_every_steps:
            self._require("predict_file", "Evaluating")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateSquadOptions(options_module.Options):
    """Scores predictions in the same way as the official SQuAD 1.1 and 2.0 scripts.

    For the same files, the scores equal those of evaluate-v1.1.py and evaluate-v2.0.py,
    with two differences. With a --null_odds_file, the official script always applies a
    threshold, 1.0 by default; this tool only applies --na_prob_thresh. If SQuAD 2.0
    questions are not answered, the official script stops; this tool scores the others
    and logs a warning. The best thresholds are right only for predictions that were
    written without a threshold.
    """

    # As in the official scripts: evaluate-v2.0.py dev.json predictions.json.
    POSITIONAL: ClassVar[tuple[str, ...]] = ("data_file", "predictions_file")

    data_file: str = option(help="SQuAD JSON file with the correct answers.")
    predictions_file: str = option(
        help="JSON file {id: answer}, as bert_tf answer writes it."
    )
    null_odds_file: str | None = option(
        None,
        help="JSON file {id: no-answer score} for SQuAD 2.0, the --na-prob-file of the "
        "official script. Adds the best thresholds and the scores at these "
        "thresholds.",
    )
    na_prob_thresh: float | None = option(
        None,
        help="With --null_odds_file: a question whose score there is above this "
        "threshold counts as predicted to have no answer. Default: predictions are "
        "scored as they are.",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.na_prob_thresh is not None and self.null_odds_file is None:
            raise options_module.OptionError("--na_prob_thresh needs --null_odds_file.")
