"""Options of run_swag."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.checkpoints import kinds
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

_OWN = (
    "train_file",
    "eval_file",
    "predict_file",
    "label_column",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSwagOptions(fine_tuning_options.TableOptions):
    """Trains, evaluates and applies a model that chooses one of several endings.

    The data is a folder in the format of SWAG or CODAH (--data_dir), or tables of your
    own (--train_file, --eval_file, --predict_file) with the columns startphrase, label,
    and ending0, ending1 and so on, or endings, a list in JSON lines. The defaults of
    batch size and learning rate are the paper's for SWAG.
    """

    TASK: ClassVar[str] = "multiple_choice"
    OTHER_FLAGS: ClassVar[Mapping[str, str]] = {
        "header": "write the names of the columns into the first line of the table",
        "tfds_name": "write the data to tables for --train_file and --eval_file",
    }

    # Section 4.4 of the paper: SWAG with batches of 16 and a learning rate of 2e-5. A
    # batch of 16 examples has 64 sequences, one per ending.
    train_batch_size: int = option(
        16,
        help="Examples per optimizer step, over all replicas. An example has one "
        "sequence per ending.",
    )
    learning_rate: float = 2e-5
    data_dir: str | None = option(
        None,
        help="Folder with train.csv, val.csv and test.csv (SWAG), or train.tsv, "
        "dev.tsv and test.tsv (CODAH).",
        on_resume=options_module.FREE,
    )
    label_column: str | None = option(
        None,
        help="Column with the number of the correct ending, counted from 0. Default: "
        "the column used in training, or label.",
    )
    do_lower_case: bool | None = option(  # type: ignore[assignment]
        None, help=kinds.CASING_HELP
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data_dir is None:
            self._check_files("data_dir")
            return
        reason = "is for your own files and cannot be combined with --data_dir"
        self._refuse(_OWN, reason)
