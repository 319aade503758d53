"""Names of written formats and of heads; importing this module is quick."""

# The model in this package, in catalogue/; its README.md says what it learned.
SHIPPED = "bert-tf-mini"
WRITTEN_FORMATS = ("bert", "hugging_face", "keras_hub", "keras")

ENCODER = "encoder"  # No head.
MASKED_LM = "masked_lm"
PRETRAINING = "pretraining"
CLASSIFICATION = "classification"
QUESTION_ANSWERING = "question_answering"
TOKEN_CLASSIFICATION = "token_classification"
MULTIPLE_CHOICE = "multiple_choice"
RETRIEVAL = "retrieval"  # A task without a head of its own.
TASK_HEADS = (
    CLASSIFICATION,
    QUESTION_ANSWERING,
    TOKEN_CLASSIFICATION,
    MULTIPLE_CHOICE,
)
HEADS = (ENCODER, MASKED_LM, PRETRAINING, *TASK_HEADS)
