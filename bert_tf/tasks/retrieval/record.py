"""How a trained retrieval model is applied: the content of task.json."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from bert_tf.checkpoints import starting_point
from bert_tf.checkpoints import text_encoding
from bert_tf.fine_tuning import task_record
from bert_tf.modeling import config as config_module
from bert_tf.modeling import heads
from bert_tf.modeling import rankers
from bert_tf.tasks.retrieval import options as retrieval_options

NUM_SPECIAL_OF_PAIR = 3  # [CLS], and a [SEP] after each text.
# Names of prompts, in the order in which sentence-transformers looks for them.
_QUERY_PROMPTS = ("query",)
_PASSAGE_PROMPTS = ("document", "passage", "corpus")


def is_cosine(text: text_encoding.TextEncoding, path: str) -> bool:
    """Returns whether a search has to scale an encoder's vectors to length 1.

    A search computes dot products. At length 1 they are cosines, whatever length the
    encoder's own vectors have.

    Args:
        text: of the encoder.
        path: of its checkpoint, for the message.

    Raises:
        ValueError: the encoder compares vectors by a distance.
    """
    similarity = text.similarity or text_encoding.COSINE
    if similarity not in (text_encoding.COSINE, text_encoding.DOT):
        raise ValueError(
            f"{path} compares vectors by their {similarity} distance, but a search "
            "here uses the cosine or the dot product; train it first (--do_train)."
        )
    return similarity == text_encoding.COSINE or bool(text.normalize)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record(task_record.TaskRecord):
    """How to apply a retrieval model to new texts.

    `max_seq_length` limits a passage or, for a cross-encoder, a query with a passage.
    Fields that also exist in `TextEncoding` have the same names, so that they are read
    when the run's folder is opened as a checkpoint.
    """

    KIND = "retrieval"

    model: str  # One of `options.MODELS`.
    max_query_length: int  # In word pieces, including [CLS] and [SEP].
    # None for a cross-encoder.
    pooling: str | None = None
    temperature: float | None = None
    normalize: bool = True  # Whether a bi-encoder's vectors have length 1.
    # See `TextEncoding`.
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    default_prompt_name: str | None = None
    output_activation: str | None = None  # Of a cross-encoder's score.
    # Whether the longer text of a pair is truncated (`packing.truncate_longer`),
    # instead of always the passage.
    longer_keeps_more: bool = False

    @property
    def query_prompt(self) -> str:
        """The text that is put before a query."""
        names = _QUERY_PROMPTS if self.is_bi_encoder else ()
        return self._prompts.prompt(names)

    @property
    def passage_prompt(self) -> str:
        """The text that is put before a passage; a pair only has the query's."""
        return self._prompts.prompt(_PASSAGE_PROMPTS) if self.is_bi_encoder else ""

    @property
    def _prompts(self) -> text_encoding.TextEncoding:
        return text_encoding.TextEncoding(
            prompts=self.prompts, default_prompt_name=self.default_prompt_name
        )

    @property
    def is_bi_encoder(self) -> bool:
        """Whether the model embeds queries and passages separately."""
        return self.model == retrieval_options.BI_ENCODER

    @property
    def num_segments(self) -> int:
        """See `TaskRecord.num_segments`."""
        return 1 if self.is_bi_encoder else 2

    def create_model(
        self, config: config_module.BertConfig, *, dtype: Any = None
    ) -> heads.TaskModel:
        """See `TaskRecord.create_model`."""
        if not self.is_bi_encoder:
            return rankers.BertCrossEncoder(config, dtype=dtype)
        return rankers.BertBiEncoder(
            config,
            pooling=typing.cast(str, self.pooling),
            temperature=typing.cast(float, self.temperature),
            normalize=self.normalize,
            dtype=dtype,
        )


def new_record(
    options: retrieval_options.RunRetrievalOptions, start: starting_point.StartingPoint
) -> Record:
    """Returns the record that options and checkpoint describe.

    Training always learns cosines. A finished encoder keeps its own similarity.

    Raises:
        ValueError: a bi-encoder is requested, but the checkpoint is a ranker; or see
            `is_cosine`.
    """
    text = start.source.text if start.source else text_encoding.TextEncoding()
    known = options.with_lengths(text.max_seq_length)
    record = Record(
        model=options.model,
        max_query_length=known.query_limit,
        max_seq_length=known.sequence_limit,
        **start.tokenizer_arguments(),
        prompts=dict(text.prompts),
        default_prompt_name=text.default_prompt_name,
    )
    if record.is_bi_encoder:
        if text.output_activation is not None and not options.trains:
            raise ValueError(
                f"{options.init_checkpoint} scores pairs of texts and has no vectors; "
                "use --model=cross_encoder, or train first (--do_train)."
            )
        path = str(options.init_checkpoint)
        return dataclasses.replace(
            record,
            pooling=options.pooling or text.pooling or rankers.DEFAULT_POOLING,
            temperature=options.temperature,
            normalize=options.trains or is_cosine(text, path),
        )
    record = dataclasses.replace(record, output_activation=text.output_activation)
    is_new = options.trains or text.output_activation is None
    if is_new or options.max_query_length is not None:
        return record
    # An external ranker truncates the longer text of a pair, whichever it is.
    return dataclasses.replace(
        record, max_query_length=known.sequence_limit, longer_keeps_more=True
    )
