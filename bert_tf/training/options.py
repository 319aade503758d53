"""Options that every training tool shares."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option

# Fine-tuning's. Lengths of max_seq_length and above are of no use and do no harm.
LENGTH_BUCKETS = (32, 48, 64, 96, 128, 160, 192, 256, 320, 384)
ALL_LAYERS = "all"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOptions(options_module.Options):
    """What a run needs whatever its task is."""

    # Options of fine-tuning only, as they are elsewhere.
    group_by_length = False
    frozen_layers = None
    # Options of pretraining only.
    pad_vocabulary = False
    max_train_minutes = None

    output_dir: str = option(
        help="Folder of the run: checkpoints, scores, settings. A checkpoint in it is "
        "continued."
    )
    init_checkpoint: str | None = option(
        None,
        help="Checkpoint whose weights the run starts from: of the release (prefix or "
        "folder), Hugging Face, KerasHub, Keras, a SavedModel; or the name of a "
        "released model, such as bert-base-uncased.",
    )
    do_train: bool = option(False, help="Train.")
    do_eval: bool = option(False, help="Evaluate the last checkpoint of output_dir.")
    train_batch_size: int = option(
        32, minimum=1, help="Sequences per optimizer step, over all replicas."
    )
    eval_batch_size: int = option(
        8, minimum=1, help="Sequences per evaluation step, over all replicas."
    )
    learning_rate: float = option(
        5e-5, minimum=0.0, help="Rate that the warm-up rises to; decays linearly to 0."
    )
    save_checkpoints_steps: int = option(
        1000, minimum=1, help="Steps between checkpoints."
    )
    iterations_per_loop: int = option(
        1000,
        minimum=1,
        help="The most steps per call from the host. Fewer where a call would take "
        "long, or a checkpoint or an evaluation is due.",
    )
    device: str = option(
        "auto",
        choices=("auto", "cpu", "gpu", "mirrored", "multi_worker", "tpu"),
        help="Where to run. auto: every GPU there is, or else the CPU; mirrored: "
        "num_replicas GPUs, or as many logical CPU devices; multi_worker: this process "
        "and others, each with its GPUs.",
    )
    worker_hosts: tuple[str, ...] = option(
        (),
        help="Address (name:port) of every process of --device=multi_worker, the same "
        "list for all; the first one writes the checkpoints. Default: what TF_CONFIG "
        "says.",
    )
    worker_index: int | None = option(
        None, minimum=0, help="Place of this process among worker_hosts, from 0."
    )
    tpu_name: str | None = option(
        None, help="Name or gRPC address of the TPU; 'local' on a TPU VM."
    )
    num_replicas: int | None = option(
        None, minimum=1, help="Replicas of --device=mirrored; default: all GPUs."
    )
    random_seed: int = option(
        12345, minimum=0, help="Fixes weights, order of examples and dropout."
    )
    dtype: str = option(
        "float32",
        choices=("float32", "mixed_bfloat16", "mixed_float16"),
        help="mixed_bfloat16 computes in bfloat16 and keeps weights, softmax, layer "
        "norm and losses in float32; mixed_float16 likewise in float16, with a loss "
        "that is scaled up as far as gradients stay finite.",
    )
    optimizer: str = option(
        "adamw",
        choices=("adamw", "lamb"),
        help="adamw: the release's; lamb: for very large batches.",
    )
    gradient_accumulation_steps: int = option(
        1, minimum=1, help="Micro-batches that a replica divides its batch into."
    )
    recompute_layers: bool = option(
        False,
        help="Keep only the inputs of each encoder layer and compute it again in the "
        "backward pass: less memory, a third more time, the same gradients.",
    )
    log_every_steps: int = option(
        100, minimum=1, help="Steps between lines of metrics.jsonl."
    )
    eval_every_steps: int = option(
        0, minimum=0, help="Steps between evaluations while training; 0: none."
    )
    early_stopping_evals: int = option(
        0,
        minimum=0,
        help="Stop after this many evaluations without a better best_metric; 0: never.",
    )
    best_metric: str = option(
        "eval_loss",
        help="Score that picks the checkpoint kept in best/. The lowest if its name "
        "ends in loss or perplexity, else the highest.",
    )
    keep_checkpoint_max: int = option(
        5, minimum=1, help="The most checkpoints that are kept."
    )
    shuffle_buffer_size: int = option(
        0,
        minimum=0,
        help="0: every epoch is one permutation of all examples; 1: in order; N: "
        "permuted in windows of N.",
    )
    length_buckets: tuple[int, ...] = option(
        (),
        help="Lengths, ascending: a batch is padded to the smallest that holds its "
        "longest sequence, or to max_seq_length. Empty: all to max_seq_length, as on a "
        "TPU.",
    )
    jit_compile: bool = option(
        False, help="Compile forward and backward pass with XLA (a TPU always does)."
    )
    dry_run: bool = option(
        False, help="Print size, steps, FLOPs, memory and time expected, and stop."
    )

    def __post_init__(self):
        super().__post_init__()
        if list(self.length_buckets) != sorted(set(self.length_buckets)):
            raise options_module.OptionError(
                f"--length_buckets={','.join(map(str, self.length_buckets))}: expected "
                "different lengths in ascending order."
            )
        if self.device == "tpu":
            self._keep_one_shape()
        if self.num_replicas is not None and self.device != "mirrored":
            raise options_module.OptionError(
                f"--num_replicas={self.num_replicas} goes with --device=mirrored, got "
                f"--device={self.device}."
            )
        self._check_workers()
        if self.tpu_name is not None and self.device != "tpu":
            raise options_module.OptionError("--tpu_name goes with --device=tpu.")
        if self.eval_every_steps == 0:
            self._check_evaluations()

    def _check_evaluations(self):
        """Refuses what has no effect where training is not interrupted by them."""
        for name in ("early_stopping_evals", "best_metric"):
            if getattr(self, name) != self._default(name):
                raise options_module.OptionError(
                    f"--{name} needs --eval_every_steps above 0."
                )

    def _check_workers(self):
        hosts, index = self.worker_hosts, self.worker_index
        if not hosts and index is None:
            return
        if self.device != "multi_worker":
            name = "worker_hosts" if hosts else "worker_index"
            raise options_module.OptionError(
                f"--{name} goes with --device=multi_worker, got --device={self.device}."
            )
        if index is None or not hosts or index >= len(hosts):
            raise options_module.OptionError(
                f"--worker_index={index} is no place among the {len(hosts)} of "
                "--worker_hosts; expected one from 0, different for every process."
            )

    def _default(self, name):
        return type(self).__dataclass_fields__[name].default

    def _keep_one_shape(self):
        """Turns default length buckets off, as a TPU needs; refuses those given."""
        if self.length_buckets not in ((), self._default("length_buckets")):
            raise options_module.OptionError(
                "--length_buckets does not go with --device=tpu, which needs one shape."
            )
        # The record is frozen, and this is still a part of making it.
        object.__setattr__(self, "length_buckets", ())


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuningOptions(TrainingOptions):
    """What a run needs that starts from a pretrained encoder."""

    length_buckets: tuple[int, ...] = option(
        LENGTH_BUCKETS,
        help="Lengths, ascending: a batch is padded to the smallest that holds its "
        "longest sequence, or to max_seq_length. Empty: all to max_seq_length, as on a "
        "TPU.",
    )
    group_by_length: bool = option(
        False,
        help="Put sequences of like length into one batch: less padding, but other "
        "batches than without.",
    )
    frozen_layers: str | None = option(
        None,
        help="N: the embeddings and the lowest N layers stay as they are, 0 being the "
        "embeddings alone; all: the whole encoder with its pooler. Default: everything "
        "learns.",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.group_by_length and self.shuffle_buffer_size == 1:
            raise options_module.OptionError(
                "--group_by_length does not go with --shuffle_buffer_size=1, which "
                "reads in order."
            )
        frozen = self.frozen_layers
        if frozen not in (None, ALL_LAYERS) and not frozen.isdecimal():
            raise options_module.OptionError(
                f"--frozen_layers={frozen}: expected a number of layers or "
                f"{ALL_LAYERS!r}."
            )
