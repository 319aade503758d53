"""Options of run_retrieval."""

import dataclasses
from typing import ClassVar
from typing import Self

from bert_tf import options as options_module
from bert_tf.checkpoints import kinds
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

BI_ENCODER = "bi_encoder"
CROSS_ENCODER = "cross_encoder"
MODELS = (BI_ENCODER, CROSS_ENCODER)
_MAX_QUERY_LENGTH = 64
_MAX_SEQ_LENGTH = 256
_OF_BI_ENCODER = ("pooling",)
_OF_CROSS_ENCODER = ("retrieve_with", "num_candidates")


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRetrievalOptions(fine_tuning_options.TaskOptions):
    """Trains, evaluates and applies a model that finds passages for queries.

    A bi_encoder computes one vector per text and searches a whole corpus. A
    cross_encoder reads query and passage together and ranks what a bi_encoder found
    (--retrieve_with). Queries with their passages are JSON lines with `query` and
    `passage`. The corpus is a text file with one passage per line, or JSON lines with
    `id` and `passage`.
    """

    TASK: ClassVar[str] = "retrieval"

    model: str = option(
        BI_ENCODER,
        choices=MODELS,
        help="bi_encoder: one vector per text, to search a whole corpus; "
        "cross_encoder: reads query and passage together, to rank the best "
        "candidates.",
    )
    train_batch_size: int = option(
        32,
        help="Queries per optimizer step, over all replicas. A bi_encoder compares "
        "each query with the passages of the whole batch, so larger batches give "
        "better results.",
    )
    eval_batch_size: int = 32
    learning_rate: float = 2e-5
    num_train_epochs: float = 1.0
    train_file: str | None = option(
        None,
        help="Queries with their passages: .jsonl, .tsv or .csv with `query`, "
        "`passage` and optionally `id`. JSON lines may also have `negatives`, a list "
        "of wrong passages.",
        on_resume=options_module.FREE,
    )
    eval_file: str | None = option(
        None,
        help="Queries to evaluate on, in the same formats. Their passages must be in "
        "corpus_file.",
        on_resume=options_module.FREE,
    )
    predict_file: str | None = option(
        None,
        help="Queries to predict, in the same formats without passages, or a text file "
        "with one query per line.",
        on_resume=options_module.FREE,
    )
    corpus_file: str | None = option(
        None,
        help="Passages to search: a text file with one passage per line; .jsonl, .tsv "
        "or .csv with `passage` and optionally `id`. Training also draws wrong "
        "passages from it.",
    )
    do_lower_case: bool | None = option(  # type: ignore[assignment]
        None, help=kinds.CASING_HELP
    )
    max_query_length: int | None = option(
        None,
        minimum=3,
        help="Maximum number of word pieces of a query, including [CLS] and [SEP]. "
        "Default: 64. Without training, the setting of init_checkpoint; a "
        "cross_encoder then truncates the longer text of a pair.",
        group="model",
    )
    max_seq_length: int | None = option(  # type: ignore[assignment]
        None,
        minimum=4,
        help="Maximum number of word pieces of a passage, including [CLS] and [SEP]. "
        "With --model=cross_encoder: of query and passage together. Default: the "
        "setting of init_checkpoint, or 256.",
        group="model",
    )
    pooling: str | None = option(
        None,
        choices=fine_tuning_options.POOLINGS,
        help="How a bi_encoder computes its vector: from [CLS], or as the mean or "
        "maximum over all word pieces. Default: the setting of init_checkpoint, "
        "or mean.",
        group="model",
    )
    num_negatives: int | None = option(
        None,
        minimum=0,
        help="Wrong passages per query in training: those of train_file first, then "
        "random ones. Default: 4 for a cross_encoder; for a bi_encoder, which "
        "also compares with the rest of the batch, the most that train_file gives "
        "for a query.",
        group="training",
    )
    top_k: int = option(
        10,
        minimum=1,
        help="Number of passages per query in the predictions.",
        group="evaluation",
    )
    retrieve_with: str | None = option(
        None,
        help="Run folder of the bi_encoder whose best passages a cross_encoder ranks, "
        "or a sentence encoder of sentence-transformers.",
        group="evaluation",
        is_path=True,
    )
    num_candidates: int = option(
        100,
        minimum=1,
        help="Number of passages per query that a cross_encoder ranks.",
        group="evaluation",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_files()
        is_bi_encoder = self.model == BI_ENCODER
        for name in _OF_CROSS_ENCODER if is_bi_encoder else _OF_BI_ENCODER:
            if not self.is_default(name):
                raise options_module.OptionError(
                    f"--{name} cannot be used with --model={self.model}."
                )
        if is_bi_encoder and self.gradient_accumulation_steps > 1:
            raise options_module.OptionError(
                f"--gradient_accumulation_steps={self.gradient_accumulation_steps} "
                "cannot be used with --model=bi_encoder, which compares each query "
                "with the passages of the whole batch. Lower --train_batch_size or "
                "--max_seq_length, or use more devices (--device=mirrored)."
            )

    def with_lengths(self, length: int | None) -> Self:
        """Returns options with the lengths of flags, of a checkpoint, or defaults.

        Training pads every query to the maximum length, so it ignores a checkpoint's.
        """
        query_length = None if self.trains else length
        return dataclasses.replace(
            self,
            max_query_length=self.max_query_length or query_length or _MAX_QUERY_LENGTH,
            max_seq_length=self.max_seq_length or length or _MAX_SEQ_LENGTH,
        )

    @property
    def ranks(self) -> bool:
        """Whether the run searches a corpus."""
        return self.evaluates or self.do_predict

    def _check_files(self) -> None:
        if self.trains:
            self._require("train_file", "Training")
        if self.evaluates:
            self._require("eval_file", "Evaluating")
        if self.do_predict:
            self._require("predict_file", "Predicting")
        if self.ranks:
            self._require(
                "corpus_file",
                "Ranking passages (those of an evaluated bi-encoder are in its "
                "passages.jsonl)",
            )
        if self.ranks and self.model == CROSS_ENCODER and not self.check:
            self._require("retrieve_with", "Ranking passages with a cross_encoder")
