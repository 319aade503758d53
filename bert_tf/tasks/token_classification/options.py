"""Options of run_ner."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option
from bert_tf.tasks.token_classification import schemes

AUTO = "auto"
# The keys of `token_classifier.FEATURE_BASED`, repeated here so that --help does not
# have to import Keras.
FEATURE_BASED = (
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunNerOptions(fine_tuning_options.PredictionOptions):
    """Trains, evaluates and applies a model that gives every word a tag.

    It finds named entities, parts of speech or anything else that the tags mark. The
    folder --data_dir has train.txt, dev.txt and test.txt with one word and its tag per
    line and a blank line after each sentence.
    """

    TASK: ClassVar[str] = "token_classification"
    OTHER_FLAGS: ClassVar[Mapping[str, str]] = {
        "train_file": "the file train.txt of --data_dir is trained on",
        "eval_file": "the file dev.txt of --data_dir is evaluated on",
        "tfds_name": "--data_dir names a folder with train.txt, dev.txt and test.txt",
    }

    data_dir: str | None = option(
        None,
        help="Folder with train.txt, dev.txt and test.txt. Only the files that the run "
        "reads are required.",
        on_resume=options_module.FREE,
    )
    predict_file: str | None = option(
        None,
        help="Plain text to tag with --do_predict instead of test.txt, one sentence "
        "per line.",
        on_resume=options_module.FREE,
    )
    entities: bool = option(
        False,
        help="With --do_predict: predictions.jsonl also has the probability of each "
        "tag, and the entities with label, text, start, end and score.",
        on_resume=options_module.FREE,
        group="evaluation",
    )
    word_column: int | None = option(
        None,
        minimum=0,
        help="Column of the words, counted from 0. Default: the column used in "
        "training, or the first one.",
    )
    tag_column: int | None = option(
        None,
        minimum=0,
        help="Column of the tags, counted from 0. Default: the column used in "
        "training, or the last one of train.txt. A test.txt without tags can be "
        "predicted, too.",
    )
    tag_scheme: str = option(
        AUTO,
        choices=(AUTO, *schemes.SCHEMES),
        help="How tags mark where entities start and end. none: they do not, as in "
        "part-of-speech tagging; auto: detect the scheme of train.txt.",
    )
    labels: tuple[str, ...] = option(
        (),
        help="All tags, in the order of the model's outputs. Default: O and, for every "
        "entity type in train.txt, all prefixes of the scheme.",
    )
    document_context: bool = option(
        False,
        help="Use windows over whole documents, as in the paper, instead of single "
        "sentences. -DOCSTART- lines separate documents.",
        group="model",
    )
    true_case: bool = option(
        False,
        help="Change sentences in capital letters to the case that their words have "
        "elsewhere in train.txt. For cased models.",
        group="model",
    )
    feature_based: str | None = option(
        None,
        choices=FEATURE_BASED,
        help="Freeze the encoder and train a two-layer BiLSTM on these layers (Table 7 "
        "of the paper). Default: fine-tune the encoder.",
        group="model",
    )

    def __post_init__(self):
        super().__post_init__()
        self._check_files()
        self._check_labels(self.labels)
        if self.true_case and self.do_lower_case:
            raise options_module.OptionError(
                "--true_case has no effect on lowercased text; use it with "
                "--do_lower_case=False."
            )
        if self.entities and not self.do_predict:
            raise options_module.OptionError("--entities needs --do_predict.")

    def _check_files(self):
        reads_folder = self.trains or self.do_eval or self.check
        if not self.data_dir and (reads_folder or not self.predict_file):
            raise options_module.OptionError(
                "--data_dir is required (a folder with train.txt, dev.txt and "
                "test.txt), except for --do_predict with --predict_file."
            )
