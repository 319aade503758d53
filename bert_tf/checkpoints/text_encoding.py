"""`TextEncoding`: how a checkpoint turns text into ids, and outputs into answers.

A checkpoint's weights do not say how a text becomes ids, or how the vectors of its
pieces become one vector or one score. Each format records what it can. The `Source`
carries the record from one format to the next.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import Self

from bert_tf import json_values
from bert_tf.checkpoints import kinds
from bert_tf.modeling import numerics
from bert_tf.modeling import pooling as pooling_module
from bert_tf.tokenization import full
from bert_tf.tokenization import vocabulary as vocabulary_module

COSINE = "cosine"
DOT = "dot"
SIMILARITIES = (COSINE, DOT, "euclidean", "manhattan")
_OUTPUT_ACTIVATIONS = tuple(numerics.OUTPUT_ACTIVATIONS)
_CHOICES = {
    "pooling": pooling_module.KINDS,
    "similarity": SIMILARITIES,
    "output_activation": _OUTPUT_ACTIVATIONS,
}
# The values of `to_dict`; see `json_values.unexpected`.
_SHAPE = {
    "do_lower_case?": bool,
    "strip_accents?": bool,
    "never_split?": [str],
    "max_seq_length?": int,
    "pooling?": pooling_module.KINDS.__contains__,
    "normalize?": bool,
    "prompts?": {str: str},
    "default_prompt_name?": str,
    "similarity?": SIMILARITIES.__contains__,
    "output_activation?": _OUTPUT_ACTIVATIONS.__contains__,
}
_FIELDS = tuple(name.removesuffix("?") for name in _SHAPE)
# Fields of the tokenizer; the other ones belong to sentence encoders and rankers.
_OF_TOKENIZER = ("do_lower_case", "strip_accents", "never_split")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextEncoding:
    """How text becomes ids, and outputs become an answer; None where it is unknown."""

    vocabulary: vocabulary_module.Vocabulary | None = None
    do_lower_case: bool | None = None
    strip_accents: bool | None = None  # None: same as `do_lower_case`, as in 2018.
    never_split: tuple[str, ...] = ()  # Texts that are kept as one piece.
    max_seq_length: int | None = None  # In pieces, including [CLS] and [SEP].
    # The vector of a text: one of `pooling.KINDS`.
    pooling: str | None = None
    normalize: bool | None = None  # Whether the vector has length 1.
    # Name -> text to put before each text, such as "query" -> "query: ".
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default_prompt_name: str | None = None  # The prompt to use if none is named.
    similarity: str | None = None  # Of two vectors: one of `SIMILARITIES`.
    # What turns the logit of a head with one output into a score.
    output_activation: str | None = None

    def __post_init__(self) -> None:
        name = self.default_prompt_name
        if name is not None and name not in self.prompts:
            raise ValueError(
                f"default_prompt_name is {name!r}; expected one of the prompts "
                f"{', '.join(self.prompts) or '(there are none)'}."
            )

    @classmethod
    def from_dict(
        cls,
        values: Mapping[str, Any],
        *,
        path: str,
        vocabulary: vocabulary_module.Vocabulary | None = None,
    ) -> Self:
        """Returns the record with the values that `to_dict` gave; ignores other keys.

        Args:
            values: a JSON object.
            path: its file, for error messages.
            vocabulary: `to_dict` does not contain it.

        Raises:
            ValueError: a value has the wrong type or is unknown.
        """
        known = {key: values[key] for key in _FIELDS if values.get(key) is not None}
        known = _of_retrieval_run(values) | known
        # The length of a pretraining's records is no limit on texts.
        is_of_task = values.get("task") in kinds.TASK_HEADS
        if not is_of_task and not {"pooling", "output_activation"} & known.keys():
            known.pop("max_seq_length", None)
        unexpected = json_values.unexpected(known, _SHAPE)
        if unexpected is not None:
            name, value = unexpected
            choices = _CHOICES.get(name)
            expected = f"expected one of {', '.join(choices)}; " if choices else ""
            raise ValueError(
                f"{path} has an unexpected value of {name}: {value!r:.60}; {expected}"
                "correct or remove it."
            )
        if "never_split" in known:
            known["never_split"] = tuple(known["never_split"])
        try:
            return cls(vocabulary=vocabulary, **known)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """Returns all known fields except the vocabulary, as JSON values."""
        values = {name: getattr(self, name) for name in _FIELDS}
        values["never_split"] = list(self.never_split) or None
        values["prompts"] = dict(self.prompts) or None
        return {name: value for name, value in values.items() if value is not None}

    def stated(self) -> tuple[str, ...]:
        """Returns the fields that vocabulary and casing alone do not describe.

        Fields with their default values are excluded.
        """
        defaults = {"do_lower_case"}
        if self.strip_accents == self.do_lower_case:
            defaults.add("strip_accents")
        if not any(self.prompts.values()):
            defaults |= {"prompts", "default_prompt_name"}
        return tuple(name for name in self.to_dict() if name not in defaults)

    def tokenizer_arguments(self) -> dict[str, Any]:
        """Returns the keyword arguments of a tokenizer, besides the vocabulary."""
        return {name: getattr(self, name) for name in _OF_TOKENIZER}

    def lowercases(self, argument: bool | None, path: str, *, flag: str) -> bool:
        """Returns whether text is lowercased; True if that is unknown, as in 2018.

        Args:
            argument: the user's argument, or None.
            path: the checkpoint, for messages.
            flag: name of the user's argument, for messages.

        Raises:
            ValueError: the argument contradicts the record, or the casing is not
                recorded and the vocabulary has cased pieces.
        """
        recorded = self.do_lower_case
        if None not in (argument, recorded) and argument != recorded:
            trained_on = "lowercased" if recorded else "cased"
            raise ValueError(
                f"{flag}={argument}, but {path} was trained on {trained_on} text; pass "
                f"{flag}={recorded}."
            )
        casing = argument if recorded is None else recorded
        if casing is not None or self.vocabulary is None:
            return casing is not False
        cased = full.cased_piece(self.vocabulary, self.never_split)
        if cased is not None:
            raise ValueError(
                f"{path} does not say whether text is lowercased, and its vocabulary "
                f"has cased pieces such as {cased!r}; pass {flag}=False, or True if "
                "the model was trained on lowercased text."
            )
        return True

    def prompt(self, names: Iterable[str] = ()) -> str:
        """Returns the prompt of the first name that has one, or the default prompt."""
        for name in (*names, self.default_prompt_name):
            if name is not None and name in self.prompts:
                return self.prompts[name]
        return ""


def _of_retrieval_run(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a retrieval run's task.json implies."""
    if values.get("model") == "bi_encoder":
        is_cosine = values.get("normalize", True)
        return {"normalize": True, "similarity": COSINE if is_cosine else DOT}
    if values.get("model") == "cross_encoder":
        return {"output_activation": numerics.IDENTITY}
    return {}
