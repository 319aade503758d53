"""Options of run_swag."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

_OWN = (
    "train_file",
    "eval_file",
    "predict_file",
    "start_column",
    "ending_columns",
    "label_column",
    "header",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSwagOptions(fine_tuning_options.TaskOptions):
    """Trains, evaluates and applies a model that chooses one of several endings.

    The data are a folder as SWAG or CODAH is published (--data_dir), or tables of your
    own (--train_file, --eval_file, --predict_file and the names of their columns).
    Sizes and rates that are not given are the paper's for SWAG.
    """

    # An example is all its endings' sequences; the paper's batch of SWAG is 16.
    train_batch_size: int = option(
        16,
        minimum=1,
        help="Examples per optimizer step, over all replicas; each has a sequence for "
        "every ending.",
    )
    eval_batch_size: int = option(
        8, minimum=1, help="Examples per evaluation step, over all replicas."
    )
    learning_rate: float = option(
        2e-5, minimum=0.0, help="Rate that the warm-up rises to; decays linearly to 0."
    )
    data_dir: str | None = option(
        None,
        help="Folder with train.csv, val.csv, test.csv (SWAG) or train.tsv, dev.tsv, "
        "test.tsv (CODAH).",
    )
    train_file: str | None = option(
        None,
        help="Your own table to train on: .tsv (no quoting), .csv or .jsonl; the first "
        "line of a .tsv or .csv names the columns.",
    )
    eval_file: str | None = option(None, help="Your own table to evaluate on.")
    predict_file: str | None = option(
        None, help="Your own table to predict; it needs no labels."
    )
    start_column: str | None = option(
        None, help="Column of the start; default: as in training, or else startphrase."
    )
    ending_columns: tuple[str, ...] = option(
        (),
        help="Columns of the endings, or one column of a .jsonl file that holds a list "
        "of them; default: as in training, or else ending0, ending1 and so on.",
    )
    label_column: str | None = option(
        None,
        help="Column of the right ending's number, counted from 0; default: as in "
        "training, or else label.",
    )
    header: tuple[str, ...] = option(
        (), help="Names of all columns, for files whose first line does not name them."
    )
    do_lower_case: bool | None = option(
        None,
        help="True for uncased checkpoints, False for cased ones; default: as "
        "init_checkpoint says, or else True.",
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="The most word pieces of a start and an ending with [CLS] and two [SEP]; "
        "what is longer is cut.",
    )
    predict_batch_size: int = option(
        8, minimum=1, help="Examples a step when predicting."
    )

    def __post_init__(self):
        super().__post_init__()
        if len(set(self.ending_columns)) != len(self.ending_columns):
            raise options_module.OptionError(
                f"--ending_columns={','.join(self.ending_columns)}: expected every "
                "column once."
            )
        if self.data_dir is None:
            self._check_own_data()
            return
        given = [name for name in _OWN if getattr(self, name)]
        if given:
            raise options_module.OptionError(
                f"--{given[0]} is for your own files and does not go with --data_dir."
            )

    def _check_own_data(self):
        if self.do_train or self.dry_run:
            self._require("train_file", "Training without --data_dir")
        if self.do_eval or self.eval_every_steps:
            self._require("eval_file", "Evaluating without --data_dir")
        if self.do_predict:
            self._require("predict_file", "Predicting without --data_dir")
