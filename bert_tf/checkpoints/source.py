"""`Source` and `Placement`: what readers return and what writers take.

Every format has a reader, path -> `Source`; most also have a writer, which takes a
`Source`. They exchange weights under the release's names and layouts, so no format
depends on another.
"""

import collections.abc
import dataclasses
from typing import Any

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.checkpoints import kinds
from bert_tf.checkpoints import names as checkpoint_names
from bert_tf.checkpoints import text_encoding
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """An opened checkpoint of any format; contains names and shapes, but no weights."""

    path: str  # The user's path, resolved to the checkpoint itself.
    # "hf://organization/model@commit" of a model on Hugging Face's hub.
    hub_name: str | None = None
    format: str  # A key of `formats.FORMATS`.
    # Release's name -> shape in the release's layout, without the optimizer's tensors.
    shapes: collections.abc.Mapping[str, tuple[int, ...]]
    # Names -> (name, float32 array in the release's layout), one in memory at a time.
    read_each: collections.abc.Callable[
        [collections.abc.Iterable[str]],
        collections.abc.Iterator[tuple[str, np.ndarray]],
    ]
    head: checkpoint_heads.Head
    config: config_module.BertConfig | None = None  # None: not stored with the weights.
    # How text becomes ids, and outputs become answers.
    text: text_encoding.TextEncoding = dataclasses.field(
        default_factory=text_encoding.TextEncoding
    )
    # The format's own names of tensors that have no place in the release's BERT.
    unmapped: tuple[str, ...] = ()
    # What the format calls a head that bert_tf does not have.
    unread_head: str | None = None
    optimizer: tuple[str, ...] = ()  # Names of slots and counters.
    # Sentences about settings of the checkpoint that give different results here.
    # They are shown whenever it is opened.
    warnings: tuple[str, ...] = ()
    # Arguments of the model's class, such as `dropout`, that only this format stores.
    arguments: collections.abc.Mapping[str, object] = dataclasses.field(
        default_factory=dict
    )
    notes: tuple[str, ...] = ()  # Sentences to show when the checkpoint is converted.

    @property
    def vocabulary(self) -> vocabulary_module.Vocabulary | None:
        """The word pieces; None: not stored with the weights."""
        return self.text.vocabulary

    @property
    def do_lower_case(self) -> bool | None:
        """Whether text is lowercased; None: unknown."""
        return self.text.do_lower_case

    def task_values(self) -> dict[str, Any]:
        """Returns what a task.json or a Keras file says besides weights and sizes."""
        values = {"task": self.head.kind, **self.text.to_dict()}
        if self.head.labels is not None:
            values["labels"] = list(self.head.labels)
        if self.head.label_kind != checkpoint_heads.SINGLE_LABEL:
            values["label_kind"] = self.head.label_kind
        return values

    def required_config(self) -> config_module.BertConfig:
        """Returns the configuration.

        Raises:
            ValueError: there is none.
        """
        if self.config is None:
            raise ValueError(
                f"The size of the model in {self.path} is unknown; put its "
                "bert_config.json beside it, or pass --bert_config_file."
            )
        return self.config

    def check_complete(
        self, missing: collections.abc.Iterable[str], *, may_lack_pooler: bool = True
    ) -> None:
        """Refuses a source that lacks some weights that a model needs.

        Raises:
            ValueError: one is missing that is not of the pooler, which some heads do
                not use, or any if `may_lack_pooler` is False.
        """
        missing = list(missing)
        if may_lack_pooler:
            missing = checkpoint_names.without_pooler(missing)
        if missing:
            raise ValueError(
                f"{self.path} lacks {len(missing)} of the model's weights, the first "
                f"{missing[0]}; expected a complete model."
            )

    def with_head(
        self, kind: str | None, *, argument: str = "--head", advice: str = ""
    ) -> tuple["Source", tuple[str, ...]]:
        """Returns a source with one head, and the names of the other heads' weights.

        Args:
            kind: kind of head to keep; None keeps everything.
            argument: name of the flag or argument with the kind, for messages.
            advice: what to do if there is no such head, for the message.

        Raises:
            ValueError: the source has no such head, its head cannot be read, or it is
                on layers that no checkpoint describes.
        """
        between = checkpoint_heads.layers_between((*self.shapes, *self.unmapped))
        if between and kind != "encoder":
            raise ValueError(
                f"{self.path} has a BiLSTM between encoder and head ({between[0]}), "
                "which only the folder of its run describes; use bert_tf.load with "
                f"that folder, or pass {argument}=encoder for the encoder alone."
            )
        if self.unread_head is not None and kind != "encoder":
            raise ValueError(
                f"{self.path} has a head that bert_tf cannot read ({self.unread_head});"
                f" pass {argument}=encoder for the encoder alone."
            )
        if kind is None:
            return self, ()
        weights = checkpoint_heads.HEADS[kind].weights
        missing = next((n for n in weights if n not in self.shapes), None)
        is_other = self.head.is_known and self.head.kind != kind
        if missing or (checkpoint_heads.OUTPUT_WEIGHTS in weights and is_other):
            detail = f" ({missing} is missing)" if missing else ""
            raise ValueError(
                f"{argument}={kind}, but {self.path} has no such head{detail}; its "
                f"head is {self.head.kind}.{advice}"
            )
        removed = [
            name
            for name in self.shapes
            if checkpoint_heads.is_head_weight(name) and name not in weights
        ]
        source = dataclasses.replace(self, unread_head=None).without_weights(removed)
        head = checkpoint_heads.head_of(
            source.shapes,
            kind=kind,
            labels=self.head.labels if self.head.num_labels else None,
            label_kind=self.head.label_kind,
        )
        return source._with_head(head), tuple(removed)

    def without_weights(self, removed: collections.abc.Iterable[str]) -> "Source":
        """Returns a source without some weights, and with the head that remains."""
        removed = set(removed)
        shapes = {n: shape for n, shape in self.shapes.items() if n not in removed}
        is_cut = not removed.isdisjoint(self.head.row.weights)
        head = checkpoint_heads.head_of(shapes) if is_cut else self.head
        return dataclasses.replace(self, shapes=shapes)._with_head(head)

    def _with_head(self, head: checkpoint_heads.Head) -> "Source":
        """Returns a source with a head; only a classifier has an output activation."""
        text = self.encoder_text if head.kind == "encoder" else self.text
        if text.output_activation and head.kind != kinds.Head.CLASSIFICATION:
            text = dataclasses.replace(
                text, output_activation=None, max_seq_length=None
            )
        arguments = self.arguments if head.kind == self.head.kind else {}
        return dataclasses.replace(self, head=head, text=text, arguments=arguments)

    @property
    def encoder_text(self) -> text_encoding.TextEncoding:
        """`text` for use without a task's head, whose training limited the length."""
        is_ranker = self.text.output_activation is not None
        if self.head.kind not in kinds.TASK_HEADS or is_ranker:
            return self.text
        return dataclasses.replace(self.text, max_seq_length=None)


def check_finite(path: str, name: str, weight: np.ndarray) -> None:
    """Refuses a weight of the checkpoint `path` with NaN or infinite values.

    The argmax over NaNs is the first index, so a model with such weights would give
    every text the same answer, without an error.

    Raises:
        ValueError: a value is not finite.
    """
    num_bad = weight.size - int(np.count_nonzero(np.isfinite(weight)))
    if num_bad:
        raise ValueError(
            f"{name} in the checkpoint {path} has {num_bad:,} of {weight.size:,} "
            "values that are NaN or infinite, so the model cannot be used; take an "
            "earlier checkpoint, or train again with a lower --learning_rate."
        )


def check_shapes(
    path: str,
    shapes: collections.abc.Mapping[str, collections.abc.Sequence[int]],
    expected: collections.abc.Mapping[str, collections.abc.Sequence[int]],
) -> None:
    """Raises a ValueError if a weight of the checkpoint `path` has another shape.

    Weights that the checkpoint lacks are not compared.
    """
    for name, shape in expected.items():
        if name not in shapes or list(shapes[name]) == list(shape):
            continue
        advice = "pass the bert_config.json that belongs to the checkpoint."
        if checkpoint_heads.is_sized_by_task(name):
            advice = (
                "its head is of a different size: extract the encoder with "
                "bert_tf convert --head=encoder, and start from that."
            )
        raise ValueError(
            f"{name} has shape {list(shapes[name])} in the checkpoint {path}, expected "
            f"{list(shape)}; {advice}"
        )


def assign(
    path: str,
    shapes: collections.abc.Mapping[str, collections.abc.Sequence[int]],
    read_each: collections.abc.Callable,
    variables: collections.abc.Mapping[str, Any],
) -> None:
    """Assigns the values of a checkpoint to variables, under any strategy.

    All shapes are compared before the first assignment. One tensor at a time is in
    memory.

    Args:
        path: the checkpoint, for messages.
        shapes: name -> shape of the checkpoint's tensors.
        read_each: as in `Source`; it refuses a name that the checkpoint lacks.
        variables: name -> variable.

    Raises:
        ValueError: a shape differs, or a value is not finite.
    """
    check_shapes(path, shapes, {name: one.shape for name, one in variables.items()})
    for name, tensor in read_each(variables):
        check_finite(path, name, tensor)
        variables[name].assign(tensor)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placement:
    """Where a `Source`'s weights go in another format; known before writing."""

    # Release's name -> the target's name, of the weights that the target can store.
    places: collections.abc.Mapping[str, str]
    # Sentences about what the target computes differently, such as a different
    # activation.
    changes: tuple[str, ...] = ()
    # Known fields of the source's `TextEncoding` that the target cannot store.
    unsaid: tuple[str, ...] = ()
