"""Options of run_ner."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option
from bert_tf.tasks.token_classification import schemes

AUTO = "auto"
# As `model.FEATURE_BASED`, which a tool that only shows its flags need not import.
FEATURE_BASED = (
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunNerOptions(fine_tuning_options.TaskOptions):
    """Trains, evaluates and applies a model that gives every word a tag.

    For named entities, parts of speech, and whatever stands in a column of tags:
    data_dir has train.txt, dev.txt and test.txt with a word and its tag in a line, and
    a blank line after each sentence.
    """

    data_dir: str | None = option(
        None,
        help="Folder with train.txt, dev.txt and test.txt, of which each is needed "
        "for what is done with it.",
    )
    predict_file: str | None = option(
        None,
        help="Plain text to tag with --do_predict in place of test.txt, a sentence a "
        "line; the tags go to predictions.jsonl.",
    )
    word_column: int | None = option(
        None,
        minimum=0,
        help="Column of the words, from 0; default: as in training, or else the first.",
    )
    tag_column: int | None = option(
        None,
        minimum=0,
        help="Column of the tags, from 0; default: as in training, or else the last "
        "of train.txt. A test.txt without it is predicted all the same.",
    )
    tag_scheme: str = option(
        AUTO,
        choices=(AUTO, *schemes.SCHEMES),
        help="How tags say where an entity starts and ends; none: they do not, as for "
        "parts of speech; auto: as train.txt looks.",
    )
    labels: tuple[str, ...] = option(
        (),
        help="All tags, in the order of the outputs; default: O and, for every type "
        "of entity in train.txt, all prefixes of the scheme.",
    )
    label_list: str | None = option(
        None, help="Or a file of all tags, in this order, a tag a line."
    )
    do_lower_case: bool = option(
        True,
        help="True for uncased checkpoints, False for cased ones, which find names "
        "better.",
    )
    max_seq_length: int = option(
        128,
        minimum=3,
        help="The most word pieces of a row with [CLS] and [SEP]; longer sentences "
        "are cut into windows.",
    )
    doc_stride: int | None = option(
        None,
        minimum=1,
        help="Pieces between the starts of two windows; default: half of "
        "max_seq_length.",
    )
    document_context: bool = option(
        False,
        help="Windows over whole documents, which -DOCSTART- lines divide, as in the "
        "paper, and not over single sentences.",
    )
    true_case: bool = option(
        False,
        help="Give sentences in capitals the case that their words have elsewhere in "
        "train.txt. For cased models.",
    )
    feature_based: str | None = option(
        None,
        choices=FEATURE_BASED,
        help="Leave the encoder as it is and train a two-layer BiLSTM on the layers "
        "named (Table 7 of the paper); default: fine-tune the encoder.",
    )
    do_predict: bool = option(
        False, help="Write test_predictions.txt for test.txt with the last checkpoint."
    )
    predict_batch_size: int = option(8, minimum=1, help="Rows a step there.")
    num_train_epochs: float = option(
        3.0, minimum=0.0, help="How often training goes over the rows."
    )

    def __post_init__(self):
        super().__post_init__()
        if (self.do_train or self.dry_run) and self.init_checkpoint is None:
            for name in ("bert_config_file", "vocab_file"):
                self._require(name, "Training without --init_checkpoint")
        self._check_files()
        if len(set(self.labels)) != len(self.labels) or len(self.labels) == 1:
            raise options_module.OptionError(
                f"--labels={','.join(self.labels)}: expected two or more different "
                "tags."
            )
        self._check_windows()
        if self.true_case and self.do_lower_case:
            raise options_module.OptionError(
                "--true_case changes nothing where all is lower-cased; it goes with "
                "--do_lower_case=False."
            )
        if self.feature_based and self.frozen_layers is not None:
            raise options_module.OptionError(
                f"--feature_based={self.feature_based} freezes the whole encoder; "
                "leave --frozen_layers out."
            )

    @property
    def stride(self) -> int:
        """Pieces between the starts of two windows."""
        return self.doc_stride or max(1, self.max_seq_length // 2)

    def _check_files(self):
        reads_folder = self.do_train or self.do_eval or self.dry_run
        if not self.data_dir and (reads_folder or not self.predict_file):
            raise options_module.OptionError(
                "--data_dir is required: the folder with train.txt, dev.txt and "
                "test.txt. Only --do_predict with --predict_file does without."
            )
        if self.predict_file and not self.do_predict:
            raise options_module.OptionError("--predict_file goes with --do_predict.")
        if self.labels and self.label_list:
            raise options_module.OptionError(
                "Expected one of --labels and --label_list."
            )

    def _check_windows(self):
        if self.stride > self.max_seq_length - 2:
            raise options_module.OptionError(
                f"--doc_stride={self.stride}: expected at most max_seq_length - 2, "
                f"{self.max_seq_length - 2}, or words would stand in no window."
            )
