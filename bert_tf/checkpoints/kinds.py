"""Names of written formats and of heads; importing this module is quick."""

import enum

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
