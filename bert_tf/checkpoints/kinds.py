"""What options say about checkpoints; importing this module is quick."""

import dataclasses
import enum
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.options import option

# The model in this package, in catalogue/; its README.md says what it learned.
SHIPPED = "bert-tf-mini"
WRITTEN_FORMATS = ("bert", "hugging_face", "keras_hub", "keras")


class Head(enum.StrEnum):
    """The kinds of heads. A task that has a head is called like it."""

    ENCODER = enum.auto()  # No head.
    MASKED_LM = enum.auto()
    PRETRAINING = enum.auto()
    CLASSIFICATION = enum.auto()
    QUESTION_ANSWERING = enum.auto()
    TOKEN_CLASSIFICATION = enum.auto()
    MULTIPLE_CHOICE = enum.auto()


HEADS = tuple(Head)
TASK_HEADS = HEADS[HEADS.index(Head.CLASSIFICATION) :]
CASING_HELP = (
    "Lowercase the text: true for uncased checkpoints, false for cased ones. Default: "
    "the setting of init_checkpoint, or true unless the vocabulary has cased pieces."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompletionOptions(options_module.Options):
    """What a checkpoint in the release's format may lack, for tools that apply it."""

    flag_group: ClassVar[str] = "model"

    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's configuration. Default: the checkpoint's own.",
    )
    vocab_file: str | None = option(
        None, help="Vocabulary of the checkpoint. Default: the checkpoint's own."
    )
    do_lower_case: bool | None = option(None, help=CASING_HELP)
