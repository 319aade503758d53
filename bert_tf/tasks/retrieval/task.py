"""What a run's `task.json` says about its model and its texts."""

import dataclasses

KIND = "retrieval"
BI_ENCODER = "bi_encoder"
CROSS_ENCODER = "cross_encoder"
MODELS = (BI_ENCODER, CROSS_ENCODER)
# Those of modeling.pooling.
POOLINGS = ("cls", "mean", "max")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """All that has to be known of a task to apply its model to new texts."""

    model: str  # One of `MODELS`.
    max_query_length: int  # The most pieces of a query, [CLS] and [SEP] counted.
    max_seq_length: int  # Of a passage, or for a cross-encoder of a pair.
    do_lower_case: bool  # As the tokenizer was in training.
    pooling: str | None = None  # Of a bi-encoder; None: there is none.
    temperature: float | None = None

    @property
    def is_bi_encoder(self) -> bool:
        """Whether the model has vectors."""
        return self.model == BI_ENCODER

    def create_model(self, config, *, dtype=None):
        """Returns the model, not built yet, for a `BertConfig`."""
        # Needs Keras, which takes seconds; the names above do not.
        from bert_tf.modeling import rankers

        if not self.is_bi_encoder:
            return rankers.BertCrossEncoder(config, dtype=dtype)
        return rankers.BertBiEncoder(
            config, pooling=self.pooling, temperature=self.temperature, dtype=dtype
        )

    @classmethod
    def from_dict(cls, values: dict, source: str) -> "Task":
        """Returns the task of a `task.json`.

        Args:
            values: what the file holds.
            source: its name, for messages.

        Raises:
            ValueError: it is another kind of task, or lacks a key.
        """
        if values.get("task") != KIND:
            raise ValueError(
                f"{source} is of the task {values.get('task')!r}; expected {KIND!r}."
            )
        names = [field.name for field in dataclasses.fields(cls)]
        missing = [name for name in names if name not in values]
        if missing:
            raise ValueError(f"{source} lacks {', '.join(missing)}; train again.")
        return cls(**{name: values[name] for name in names})

    def to_dict(self) -> dict:
        """Returns what `task.json` holds."""
        return {"task": KIND} | dataclasses.asdict(self)
