"""A checkpoint of any format, opened: its weights by the release's names.

Every format has a reader, `path -> Source`, and most have a writer, which takes a
`Source` too. So no format knows another one.
"""

import collections.abc
import dataclasses

import numpy as np

from bert_tf.checkpoints import heads as checkpoint_heads
from bert_tf.modeling import config as config_module
from bert_tf.tokenization import vocabulary as vocabulary_module


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """What a checkpoint holds; nothing but names and shapes is in memory."""

    path: str  # What the user gave, resolved to the checkpoint itself.
    format: str  # A key of `formats.FORMATS`.
    # Release's name -> shape in the release's layout, the optimizer's apart.
    shapes: collections.abc.Mapping[str, tuple[int, ...]]
    # Names -> (name, float32 array in the release's layout), one in memory at a time.
    read_each: collections.abc.Callable[
        [collections.abc.Iterable[str]],
        collections.abc.Iterator[tuple[str, np.ndarray]],
    ]
    head: checkpoint_heads.Head  # What stands on the encoder.
    config: config_module.BertConfig | None = None  # None: not beside the weights.
    vocabulary: vocabulary_module.Vocabulary | None = None
    do_lower_case: bool | None = None  # None: not known.
    pooling: str | None = None  # Of an encoder of texts: "cls", "mean" or "max".
    # Its own names of tensors that have no place in a BERT of the release.
    unmapped: tuple[str, ...] = ()
    optimizer: tuple[str, ...] = ()  # Names of slots and step counter.
    # Release's name -> the source's own name, where they differ; for reports.
    own_names: collections.abc.Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )
    notes: tuple[str, ...] = ()  # Sentences that whoever converts it should read.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the weights of a `Source` go in another format; found before writing."""

    places: collections.abc.Mapping[str, str]  # Release's name -> the target's name.
    without_place: tuple[str, ...] = ()  # Release's names that the target has not.
    # Sentences on what the target computes otherwise, such as another activation.
    changes: tuple[str, ...] = ()
