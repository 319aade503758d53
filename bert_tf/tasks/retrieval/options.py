"""Options of run_retrieval."""

import dataclasses
from collections.abc import Callable

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option
from bert_tf.tasks.retrieval import search as search_module
from bert_tf.training import options as training_options

BI_ENCODER = "bi_encoder"
CROSS_ENCODER = "cross_encoder"
MODELS = (BI_ENCODER, CROSS_ENCODER)
# As `modeling.pooling.KINDS`: a tool that shows its flags must not import Keras.
POOLINGS = ("cls", "mean", "max")
_OF_BI_ENCODER = ("pooling", "temperature")
_OF_CROSS_ENCODER = ("retrieve_with", "num_candidates")
_NEGATIVES_OF_CROSS_ENCODER = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRetrievalOptions(fine_tuning_options.TaskOptions):
    """Trains, evaluates and applies a model that finds passages for queries.

    A bi_encoder makes one vector a text and searches a whole corpus; a cross_encoder
    reads query and passage together and ranks again what a bi_encoder found
    (--retrieve_with). Queries with their passages are JSON lines with `query` and
    `passage`, the corpus is text with a passage a line or JSON lines with `id` and
    `passage`; files of SQuAD (.json) are taken as they are for both.
    """

    model: str = option(
        BI_ENCODER,
        choices=MODELS,
        help="What kind of model it is.",
    )
    train_batch_size: int = option(
        32,
        minimum=1,
        help="Queries per optimizer step, over all replicas. A bi_encoder compares "
        "each with the passages of all: more are better.",
    )
    eval_batch_size: int = option(
        32, minimum=1, help="Texts or pairs per step when evaluating and predicting."
    )
    learning_rate: float = option(
        2e-5, minimum=0.0, help="Rate that the warm-up rises to; decays linearly to 0."
    )
    best_metric: str = option(
        "eval_mrr",
        help="Score that picks the checkpoint kept in best/, the highest.",
    )
    train_file: str | None = option(
        None,
        help="Queries and their passages: .jsonl, .tsv or .csv with `query`, `passage` "
        "and perhaps `id`; in JSON lines perhaps a list `negatives` of passages that "
        "are wrong. Or a .json file of SQuAD.",
    )
    eval_file: str | None = option(
        None, help="The same to evaluate on; its passages stand in corpus_file."
    )
    predict_file: str | None = option(
        None, help="Queries: as eval_file without passages, or text with one a line."
    )
    corpus_file: str | None = option(
        None,
        help="Passages to search: text with one a line; .jsonl, .tsv or .csv with "
        "`passage` and perhaps `id`; or a .json file of SQuAD. In training wrong "
        "passages are drawn from it, too.",
    )
    do_lower_case: bool | None = option(
        None,
        help="True for uncased checkpoints, False for cased ones; default: as "
        "init_checkpoint says, or else True.",
    )
    max_query_length: int = option(
        64, minimum=3, help="The most pieces of a query with [CLS] and [SEP]."
    )
    max_seq_length: int = option(
        256,
        minimum=4,
        help="The most pieces of a passage with [CLS] and [SEP]; of a cross_encoder "
        "those of query and passage together.",
    )
    pooling: str | None = option(
        None,
        choices=POOLINGS,
        help="What a bi_encoder's vector is: that of [CLS], or mean or maximum of all "
        "pieces; default: as init_checkpoint says, or else mean.",
    )
    temperature: float = option(
        0.05,
        minimum=1e-4,
        help="A bi_encoder learns by the softmax of cosine / temperature.",
    )
    num_negatives: int | None = option(
        None,
        minimum=0,
        help="Wrong passages of each query: those that train_file gives, and others "
        "drawn at random. Default: 4 for a cross_encoder; for a bi_encoder, which has "
        "those of the whole batch besides, as many as train_file gives at most.",
    )
    do_predict: bool = option(
        False, help="Rank passages for the queries of predict_file."
    )
    num_train_epochs: float = option(
        1.0, minimum=0.0, help="How often training goes over the examples."
    )
    recall_at: tuple[int, ...] = option(
        (1, 5, 10, 100), minimum=1, help="First places whose recall is told."
    )
    top_k: int = option(10, minimum=1, help="Passages of each query in predictions.")
    search: str = option(
        "exact",
        choices=search_module.KINDS,
        help="exact needs little memory; faiss is exact and fast, hnswlib almost "
        "exact and fastest; both hold all vectors in memory, and have to be installed.",
    )
    retrieve_with: str | None = option(
        None,
        help="Run folder of a bi_encoder, whose best passages a cross_encoder ranks.",
    )
    num_candidates: int = option(
        100, minimum=1, help="Passages of each query that a cross_encoder ranks."
    )

    def __post_init__(self):
        super().__post_init__()
        self._check_files()
        is_bi_encoder = self.model == BI_ENCODER
        for name in _OF_CROSS_ENCODER if is_bi_encoder else _OF_BI_ENCODER:
            if getattr(self, name) != self._default(name):
                raise options_module.OptionError(
                    f"--{name} does not go with --model={self.model}."
                )
        if is_bi_encoder and self.gradient_accumulation_steps > 1:
            raise options_module.OptionError(
                f"--gradient_accumulation_steps={self.gradient_accumulation_steps} "
                "does not go with --model=bi_encoder: each query is compared with the "
                "passages of the whole batch; lower --train_batch_size or "
                "--max_seq_length, or spread the batch (--device=mirrored)."
            )
        if is_bi_encoder and self.frozen_layers == training_options.ALL_LAYERS:
            raise options_module.OptionError(
                "--frozen_layers=all leaves nothing to train with --model=bi_encoder."
            )
        if not self.recall_at:
            raise options_module.OptionError(
                "--recall_at: expected one number or more."
            )

    @property
    def ranks(self) -> bool:
        """Whether a corpus is searched."""
        return self.evaluates or self.do_predict

    def negatives_per_query(self, most_given: Callable[[], int]) -> int:
        """Returns how many wrong passages each query has in training.

        Args:
            most_given: returns the most that a row of train_file gives; called only
                where it decides.
        """
        if self.num_negatives is not None:
            return self.num_negatives
        if self.model == CROSS_ENCODER:
            return _NEGATIVES_OF_CROSS_ENCODER
        return most_given()

    def sequences_per_example(self, num_negatives: int) -> float:
        """Returns how many sequences of max_seq_length an example of training is.

        Args:
            num_negatives: what `negatives_per_query` returned.
        """
        sequences = 1 + num_negatives
        if self.model == BI_ENCODER:
            sequences += self.max_query_length / self.max_seq_length
        return sequences

    def _check_files(self):
        if self.do_train or self.dry_run:
            self._require("train_file", "Training")
        if self.evaluates:
            self._require("eval_file", "Evaluating")
        if self.do_predict:
            self._require("predict_file", "Predicting")
        if self.ranks:
            self._require("corpus_file", "Ranking passages")
        if self.ranks and self.model == CROSS_ENCODER:
            self._require("retrieve_with", "Ranking passages with a cross_encoder")
