"""What stands on the encoder in a checkpoint, and the model that goes with it."""

import dataclasses

import keras

import bert_tf.modeling  # noqa: F401 (registers every model with Keras)
from bert_tf.modeling import config as config_module

# Kind of head -> class of the model, as Keras has it registered, and its arguments.
_MODELS = {
    "encoder": ("BertModel", {}),
    "pretraining": ("BertPretrainer", {}),
    "masked_lm": ("BertPretrainer", {"next_sentence": False}),
    "classification": ("BertClassifier", {}),
    "question_answering": ("BertSpanPredictor", {}),
    "token_classification": ("BertTokenClassifier", {}),
    "multiple_choice": ("BertMultipleChoice", {}),
}
# With causal attention the head of masked words says the next one: the same weights.
_LEFT_TO_RIGHT = "BertLeftToRight"
KINDS = tuple(_MODELS)
# What the label of a classifier's head is -> the class of its model: one class, any
# number of classes, or a number. Their weights are the same.
_CLASSIFIERS = {
    "single_label": "BertClassifier",
    "multi_label": "BertMultiLabelClassifier",
    "regression": "BertRegressor",
}
LABEL_KINDS = tuple(_CLASSIFIERS)
_WITH_LABELS = ("classification", "token_classification")
# Heads whose weights are `output_weights` [C, H] and `output_bias` [C], like the
# release's classifier: shapes do not tell them apart.
OUTPUT_WEIGHTS = "output_weights"
# What some runs have between encoder and head, and only their own folders describe.
_BETWEEN = ("bilstm/", "layer_mix/")
KINDS_WITH_OUTPUT_WEIGHTS = (*_WITH_LABELS, "multiple_choice")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """The head of a checkpoint; "encoder" where there is none."""

    kind: str  # One of `KINDS`.
    num_labels: int | None = None  # Classes or tags; None for other kinds.
    labels: tuple[str, ...] | None = None  # Their names, where known.
    # False where the kind is the likeliest one of weights that several kinds share.
    is_known: bool = True
    label_kind: str = LABEL_KINDS[0]  # One of `LABEL_KINDS`; for classification only.

    def __post_init__(self):
        if self.kind not in _MODELS:
            raise ValueError(
                f"Unknown kind of head {self.kind!r}; expected one of "
                f"{', '.join(KINDS)}."
            )
        if self.label_kind not in LABEL_KINDS:
            raise ValueError(
                f"Unknown kind of label {self.label_kind!r}; expected one of "
                f"{', '.join(LABEL_KINDS)}."
            )
        if self.label_kind == "regression" and self.num_labels != 1:
            raise ValueError(
                f"A regression has 1 output, but the head has {self.num_labels}; "
                "give the checkpoint that its task.json belongs to."
            )


def head_of(shapes, *, kind=None, labels=None, label_kind=LABEL_KINDS[0]):
    """Returns the `Head` that a checkpoint's names and shapes show.

    Args:
        shapes: {release's name: shape}.
        kind: what is known of it, for example from a task.json; None: what the names
            show, where `output_weights` alone is taken for a classifier, as in 2018.
        labels: names of the classes or tags, where known.
        label_kind: what a classifier's label is, one of `LABEL_KINDS`.

    Raises:
        ValueError: `kind` is none of `KINDS`, or its weights are not there; or a
            number has several outputs.
    """
    is_known = kind is not None or OUTPUT_WEIGHTS not in shapes
    if kind is None:
        kind = _kind_shown(shapes)
    num_labels = None
    if kind in _WITH_LABELS:
        if OUTPUT_WEIGHTS not in shapes:
            raise ValueError(
                f"There is no {OUTPUT_WEIGHTS} for a head of the kind {kind}."
            )
        num_labels = shapes[OUTPUT_WEIGHTS][0]
    return Head(
        kind=kind,
        num_labels=num_labels,
        labels=labels and tuple(labels),
        is_known=is_known,
        label_kind=label_kind if kind == "classification" else LABEL_KINDS[0],
    )


def between(names):
    """Returns those names that are of layers between encoder and head: a BiLSTM's."""
    return [name for name in names if name.startswith(_BETWEEN)]


def kind_of(model):
    """Returns the kind of head that a model has; None for a model of another kind."""
    if type(model).__name__ == _LEFT_TO_RIGHT:
        return "masked_lm"
    if type(model).__name__ in _CLASSIFIERS.values():
        return "classification"
    kinds = [
        kind for kind, (name, _) in _MODELS.items() if name == type(model).__name__
    ]
    if "masked_lm" in kinds:
        return "pretraining" if model.next_sentence else "masked_lm"
    return kinds[0] if kinds else None


def create_model(config: config_module.BertConfig, head: Head, **kwargs):
    """Returns the built model, newly initialized, that a head belongs to.

    Args:
        config: BertConfig.
        head: `Head`.
        **kwargs: name and dtype, as for every Keras model.
    """
    class_name, arguments = _MODELS[head.kind]
    if head.kind == "masked_lm" and config.is_causal:
        class_name, arguments = _LEFT_TO_RIGHT, {}
    if head.kind == "classification":
        class_name = _CLASSIFIERS[head.label_kind]
    model_class = keras.saving.get_registered_object(f"bert_tf>{class_name}")
    if head.num_labels is not None and head.label_kind != "regression":
        arguments = arguments | {"num_labels": head.num_labels}
    model = model_class(config, **arguments, **kwargs)
    model.build()
    return model


def _kind_shown(shapes):
    if any(name.startswith("cls/squad/") for name in shapes):
        return "question_answering"
    if OUTPUT_WEIGHTS in shapes:
        return "classification"
    if any(name.startswith("cls/seq_relationship/") for name in shapes):
        return "pretraining"
    if any(name.startswith("cls/predictions/") for name in shapes):
        return "masked_lm"
    return "encoder"
