"""One table of heads: for each kind of head, everything that the formats need to know.

A new head is a model in `bert_tf.modeling`, a name in `kinds` and a row of `HEADS`.

Shape letters of features: B batch, S sequence, C choices, M masked positions. Of
weights: C classes, H hidden, V vocabulary.
"""

import dataclasses
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras

from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.modeling import config as config_module

# A classifier's label is one class, any number of classes, or one or more numbers.
SINGLE_LABEL = "single_label"
MULTI_LABEL = "multi_label"
REGRESSION = "regression"
LABEL_KINDS = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)
# The output layer of the release's classifier. Other heads use the same names, so a
# checkpoint's names alone do not tell these heads apart.
OUTPUT_WEIGHTS = "output_weights"
OUTPUT_BIAS = "output_bias"
OUTPUTS = (OUTPUT_WEIGHTS, OUTPUT_BIAS)
# Name in task.json of the retrieval model that scores a pair of texts.
_CROSS_ENCODER = "cross_encoder"
# Layers that some runs put between encoder and head. Only their run folder says how
# they are used.
_BETWEEN = ("bilstm/", "layer_mix/")

_MASKED_WORDS = {
    "cls/predictions/transform/dense/kernel": "HH",
    "cls/predictions/transform/dense/bias": "H",
    "cls/predictions/transform/LayerNorm/gamma": "H",
    "cls/predictions/transform/LayerNorm/beta": "H",
    "cls/predictions/output_bias": "V",
}
_NEXT_SENTENCE = {
    "cls/seq_relationship/output_weights": "2H",
    "cls/seq_relationship/output_bias": "2",
}
_LABELS = {OUTPUT_WEIGHTS: "CH", OUTPUT_BIAS: "C"}
_CHOICES = {OUTPUT_WEIGHTS: "1H", OUTPUT_BIAS: "1"}
_SPANS = {"cls/squad/output_weights": "2H", "cls/squad/output_bias": "2"}

_SEQUENCES = {"input_ids": "BS", "input_mask": "BS", "segment_ids": "BS"}
_WITH_MASKED_WORDS = {**_SEQUENCES, "masked_lm_positions": "BM"}
_SEQUENCES_OF_CHOICES = dict.fromkeys(_SEQUENCES, "BCS")


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeadKind:
    """A row of `HEADS`."""

    # Label kind -> name of the class; one entry unless a classifier.
    models: Mapping[str, str]
    # Keyword arguments of these classes.
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    causal_model: str | None = None  # The class under causal attention, if another.
    weights: Mapping[str, str]  # Release's name -> shape in letters and digits.
    # Start of the names that show this kind; None: a different kind has the same names.
    shown_by: str | None = None
    hugging_face_class: str
    hugging_face_has_pooler: bool = True  # Whether that class has a pooler.
    # Feature -> shape in letters.
    features: Mapping[str, str] = dataclasses.field(default_factory=lambda: _SEQUENCES)

    @property
    def has_labels(self) -> bool:
        """Whether the number of outputs is the number of a task's labels."""
        return any("C" in shape for shape in self.weights.values())

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of all model classes of this kind."""
        return (*self.models.values(), *filter(None, [self.causal_model]))


# When several kinds are in one checkpoint, the later row counts: a fine-tuned head
# before the pretraining heads that were left in.
HEADS: Mapping[str, HeadKind] = {
    kinds.Head.ENCODER: HeadKind(
        models={SINGLE_LABEL: "BertModel"},
        weights={},
        shown_by="",
        hugging_face_class="BertModel",
    ),
    # With causal attention the same weights predict the next word.
    kinds.Head.MASKED_LM: HeadKind(
        models={SINGLE_LABEL: "BertPretrainer"},
        arguments={"next_sentence": False},
        causal_model="BertLeftToRight",
        weights=_MASKED_WORDS,
        shown_by="cls/predictions/",
        hugging_face_class="BertForMaskedLM",
        hugging_face_has_pooler=False,
        features=_WITH_MASKED_WORDS,
    ),
    kinds.Head.PRETRAINING: HeadKind(
        models={SINGLE_LABEL: "BertPretrainer"},
        arguments={"next_sentence": True},
        weights=_MASKED_WORDS | _NEXT_SENTENCE,
        shown_by="cls/seq_relationship/",
        hugging_face_class="BertForPreTraining",
        features=_WITH_MASKED_WORDS,
    ),
    kinds.Head.CLASSIFICATION: HeadKind(
        models={
            SINGLE_LABEL: "BertClassifier",
            MULTI_LABEL: "BertMultiLabelClassifier",
            REGRESSION: "BertRegressor",
        },
        weights=_LABELS,
        shown_by=OUTPUT_WEIGHTS,
        hugging_face_class="BertForSequenceClassification",
    ),
    kinds.Head.QUESTION_ANSWERING: HeadKind(
        models={SINGLE_LABEL: "BertSpanPredictor"},
        weights=_SPANS,
        shown_by="cls/squad/",
        hugging_face_class="BertForQuestionAnswering",
        hugging_face_has_pooler=False,
    ),
    kinds.Head.TOKEN_CLASSIFICATION: HeadKind(
        models={SINGLE_LABEL: "BertTokenClassifier"},
        weights=_LABELS,
        hugging_face_class="BertForTokenClassification",
        hugging_face_has_pooler=False,
    ),
    kinds.Head.MULTIPLE_CHOICE: HeadKind(
        models={SINGLE_LABEL: "BertMultipleChoice"},
        weights=_CHOICES,
        hugging_face_class="BertForMultipleChoice",
        features=_SEQUENCES_OF_CHOICES,
    ),
}
KINDS = tuple(HEADS)
KINDS_WITH_OUTPUT_WEIGHTS = tuple(
    kind for kind, row in HEADS.items() if OUTPUT_WEIGHTS in row.weights
)
# Release's name -> size of the first axis of a head's weight, a letter or digit. For
# `OUTPUTS` it is "C" or "1", depending on the head; the task decides on either.
_FIRST_AXES = {
    name: shape[0] for row in HEADS.values() for name, shape in row.weights.items()
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """The head of a checkpoint; kind "encoder" if it has none."""

    kind: str  # A key of `HEADS`.
    num_labels: int | None = None  # Classes, tags or numbers; None for other kinds.
    labels: tuple[str, ...] | None = None  # Their names, if known.
    # False: the weights fit several kinds, and this is the likeliest.
    is_known: bool = True
    label_kind: str = SINGLE_LABEL  # One of `LABEL_KINDS`; for classification only.

    def __post_init__(self) -> None:
        for what, value, known in (
            ("head", self.kind, KINDS),
            ("label", self.label_kind, LABEL_KINDS),
        ):
            if value not in known:
                raise ValueError(
                    f"Unknown kind of {what} {value!r}; expected one of "
                    f"{', '.join(known)}."
                )

    @property
    def row(self) -> HeadKind:
        """What `HEADS` says about this kind."""
        return HEADS[self.kind]


def head_of(
    shapes: Mapping[str, Sequence[int]],
    *,
    kind: str | None = None,
    labels: Iterable[str] | None = None,
    label_kind: str = SINGLE_LABEL,
) -> Head:
    """Returns the `Head` that a checkpoint's names and shapes show.

    Args:
        shapes: {release's name: shape}.
        kind: the kind if it is known, for example from a task.json. None: what the
            names show; `output_weights` alone is taken for a classifier, as in 2018.
        labels: names of the classes or tags, if known.
        label_kind: what a classifier's label is, one of `LABEL_KINDS`.
    """
    is_known = kind is not None or OUTPUT_WEIGHTS not in shapes
    if kind is None:
        kind = _kind_shown(shapes)
    num_labels = None
    if HEADS[kind].has_labels:
        if OUTPUT_WEIGHTS not in shapes:
            raise ValueError(f"The head {kind} needs weights named {OUTPUT_WEIGHTS}.")
        num_labels = shapes[OUTPUT_WEIGHTS][0]
    if num_labels == 1 and label_kind == SINGLE_LABEL:
        label_kind = REGRESSION  # A softmax over one output is always 1.
    return Head(
        kind=kind,
        num_labels=num_labels,
        labels=None if not labels else tuple(labels),
        is_known=is_known,
        label_kind=label_kind if kind == kinds.Head.CLASSIFICATION else SINGLE_LABEL,
    )


def head_of_task(shapes: Mapping[str, Sequence[int]], task: Mapping[str, Any]) -> Head:
    """Returns the `Head` of a checkpoint with the task.json beside it.

    task.json only decides between heads whose weights have the same names.
    """
    head = head_of(shapes)
    kind, labels = task.get("task"), task.get("labels")
    label_kind = task.get("label_kind", SINGLE_LABEL)
    if task.get("model") == _CROSS_ENCODER:
        kind, label_kind = kinds.Head.CLASSIFICATION, REGRESSION
    if OUTPUT_WEIGHTS not in shapes or kind not in KINDS_WITH_OUTPUT_WEIGHTS:
        return head
    head = head_of(shapes, kind=kind, label_kind=label_kind)
    names = tuple(map(str, labels)) if isinstance(labels, list) else None
    num_outputs = head.num_labels if names is None else max(1, len(names))
    if label_kind == REGRESSION and head.num_labels != num_outputs:
        raise ValueError(
            f"The regression has {num_outputs} output(s), but the head has "
            f"{head.num_labels}; pass the checkpoint that its task.json belongs to."
        )
    is_named = names is not None and len(names) == head.num_labels
    return dataclasses.replace(head, labels=names if is_named else None)


def head_shapes(
    config: config_module.BertConfig, kind: str, num_labels: int | None = None
) -> dict[str, checkpoint_names.Shape]:
    """Returns {release's name: shape} of a head's weights."""
    letters: dict[str, Any] = {**checkpoint_names.sizes(config), "C": num_labels}
    return {
        name: tuple(int(s) if s.isdigit() else letters[s] for s in shape)
        for name, shape in HEADS[kind].weights.items()
    }


def check_weights(
    path: str,
    shapes: Mapping[str, checkpoint_names.Shape],
    config: config_module.BertConfig,
    head: Head,
    own: Callable[[str, checkpoint_names.Shape], tuple[str, checkpoint_names.Shape]]
    | None = None,
) -> None:
    """Checks that a checkpoint has the weights that its configuration expects.

    The pooler may be missing where transformers saves none: sentence encoders, and
    heads that do not use it.

    Args:
        path: the checkpoint, for messages.
        shapes: {release's name: shape}.
        config: its configuration.
        head: its head.
        own: release's name and shape -> the format's, for messages.

    Raises:
        ValueError: a weight is missing, or has another shape.
    """
    own = own or (lambda name, shape: (name, shape))
    expected = checkpoint_names.encoder_shapes(config)
    expected |= head_shapes(config, head.kind, head.num_labels)
    missing = [name for name in expected if name not in shapes]
    if head.kind == kinds.Head.ENCODER or not head.row.hugging_face_has_pooler:
        missing = checkpoint_names.without_pooler(missing)
    if missing:
        name, _ = own(missing[0], expected[missing[0]])
        raise ValueError(
            f"{path}: {len(missing)} of the {len(expected)} weights that its "
            f"configuration expects are missing, such as {name}; it belongs to another "
            "model, or a file is missing."
        )
    for name in expected:
        if name in shapes and shapes[name] != expected[name]:
            own_name, shape = own(name, shapes[name])
            raise ValueError(
                f"{path}: {own_name} has shape {list(shape)}, but its configuration "
                f"expects {list(own(name, expected[name])[1])}; the files belong to "
                "different models."
            )


def layers_between(names: Iterable[str]) -> list[str]:
    """Returns the names of layers between encoder and head, such as a BiLSTM's."""
    return [name for name in names if name.startswith(_BETWEEN)]


def is_head_weight(name: str) -> bool:
    """Returns whether a weight belongs to a head or to a layer before it."""
    return name.startswith(("cls/", *_BETWEEN)) or name in OUTPUTS


def is_sized_by_task(name: str) -> bool:
    """Returns whether a weight's shape depends on the task, not only on the config."""
    return _FIRST_AXES.get(name) in ("C", "1", "2")


def is_sized_by_vocabulary(name: str) -> bool:
    """Returns whether a weight has one row, or one number, for each word piece."""
    return _FIRST_AXES.get(name) == "V" or name == checkpoint_names.WORD_EMBEDDINGS


def kind_of(model: Any) -> str | None:
    """Returns the kind of head that a model has; None if it is not in `HEADS`."""
    name = type(model).__name__
    if model_class(name) is not type(model):
        return None
    for kind, row in HEADS.items():
        if name == row.causal_model or (
            name in row.models.values()
            and all(getattr(model, k) == value for k, value in row.arguments.items())
        ):
            return kind
    return None


def model_class(name: str) -> Any:
    """Returns the class of this name, which `bert_tf.modeling` registers with Keras."""
    return keras.saving.get_registered_object(f"bert_tf>{name}")


def create_model(config: config_module.BertConfig, head: Head, **kwargs: Any) -> Any:
    """Returns a built, newly initialized model; `kwargs` are `name` and `dtype`."""
    row = head.row
    name, arguments = row.models[head.label_kind], dict(row.arguments)
    if config.is_causal and row.causal_model is not None:
        name, arguments = row.causal_model, {}
    if head.num_labels is not None:
        arguments["num_labels"] = head.num_labels
    model = model_class(name)(config, **arguments, **kwargs)
    model.build()
    return model


def _kind_shown(shapes: Mapping[str, Sequence[int]]) -> str:
    for kind, row in reversed(list(HEADS.items())):
        start = row.shown_by
        if start is not None and any(name.startswith(start) for name in shapes):
            return kind
    return "encoder"
