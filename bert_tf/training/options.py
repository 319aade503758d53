"""Options of training, in one small record for each part that reads them.

`DeviceOptions`, `OptimizerOptions`, `EvaluationOptions` and `CheckpointOptions` are
what the parts of training take. `TrainerOptions` is all of them in one flat record:
`loop.Trainer` takes it, and Python callers create it.

    TrainerOptions(output_dir="run", learning_rate=3e-5, device="cpu")

`TrainingOptions` adds the options specific to the command line.
"""

import dataclasses
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.options import option

# Fine-tuning pads each batch to the smallest of these lengths that fits its longest
# sequence, or else to max_seq_length.
LENGTH_BUCKETS = (32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384)
MIXED_FLOAT16 = "mixed_float16"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions(options_module.Options):
    """Where a run is saved, how often, and which weights it starts from."""

    flag_group: ClassVar[str] = "saving"
    keep_checkpoint_max = 5  # Not a field: only pretraining has an option for it.

    output_dir: str = option(
        group=options_module.TASK_AND_DATA,
        help="Output folder for checkpoints, scores and settings. If it contains a "
        "checkpoint, training resumes from it.",
        on_resume=options_module.FREE,
    )
    init_checkpoint: str | None = option(
        None,
        group="model",
        help="Checkpoint to start from: in the release's format (prefix or folder), "
        "from Hugging Face, KerasHub or Keras, a SavedModel, the name of a released "
        "model, such as bert-base-uncased, or hf://organization/model. Default: "
        "fine-tuning starts from bert-tf-mini, a small model in the package.",
        is_path=True,
    )
    save_checkpoints_steps: int = option(
        1000, minimum=1, help="Number of training steps between checkpoints."
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluationOptions(options_module.Options):
    """How the model is evaluated."""

    flag_group: ClassVar[str] = "evaluation"

    eval_batch_size: int = option(
        8,
        minimum=1,
        help="Examples, or windows, per evaluation step, over all replicas.",
    )
    eval_every_steps: int = option(
        0,
        minimum=0,
        help="Number of training steps between evaluations. The best checkpoint is "
        "kept in best/. 0: do not evaluate during training.",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerOptions(options_module.Options):
    """What determines the weights that training arrives at, apart from the data."""

    flag_group: ClassVar[str] = "training"
    optimizer = "adamw"  # Not a field: only pretraining has an option for it.

    train_batch_size: int = option(
        32, minimum=1, help="Sequences per optimizer step, over all replicas."
    )
    learning_rate: float = option(
        5e-5,
        minimum=0.0,
        help="Peak learning rate. It is reached at the end of the warm-up and then "
        "decays linearly to 0.",
    )
    bias_correction: bool = option(
        False,
        help="Correct the bias of Adam's moments, as other libraries do. Without it, "
        "as in 2018, the first few hundred steps are up to six times as large as "
        "learning_rate says. lamb always corrects it.",
    )
    gradient_accumulation_steps: int = option(
        1,
        minimum=1,
        help="Number of micro-batches that each replica splits its batch into, to save "
        "memory.",
        on_resume=options_module.FREE,
    )
    recompute_layers: bool = option(
        False,
        group="advanced",
        help="Keep only the input of each encoder layer and recompute the layer in the "
        "backward pass. Saves memory, takes about a third more time, and does not "
        "change the gradients.",
        on_resume=options_module.FREE,
    )
    random_seed: int = option(
        12345,
        minimum=0,
        maximum=2**32 - 1,  # NumPy takes no larger one.
        help="Seed of the initial weights, the order of the examples and dropout.",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceOptions(options_module.Options):
    """Which devices compute, together with which other processes, and how."""

    flag_group: ClassVar[str] = "devices"

    device: str = option(
        "auto",
        choices=("auto", "cpu", "gpu", "mirrored", "multi_worker", "tpu"),
        help="auto: all GPUs of this machine, or the CPU if it has none. mirrored: "
        "num_replicas GPUs, or as many logical CPU devices. multi_worker: this process "
        "together with others, each with its own GPUs, as the environment variable "
        "TF_CONFIG says.",
    )
    num_replicas: int | None = option(
        None,
        minimum=1,
        help="Number of replicas for --device=mirrored. Default: one per GPU.",
    )
    tpu_name: str | None = option(
        None,
        help="local, or omit it: the TPU of this machine, which must be a TPU VM.",
    )
    dtype: str = option(
        "float32",
        choices=("float32", "mixed_bfloat16", MIXED_FLOAT16),
        help="mixed_bfloat16: compute in bfloat16, but keep weights, softmax, layer "
        "normalization and losses in float32. mixed_float16: the same in float16, with "
        "dynamic loss scaling.",
        on_resume=options_module.REFUSED,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.num_replicas is not None and self.device != "mirrored":
            raise options_module.OptionError(
                f"--num_replicas={self.num_replicas} requires --device=mirrored, got "
                f"--device={self.device}."
            )
        if self.tpu_name and self.device != "tpu":
            raise options_module.OptionError("--tpu_name requires --device=tpu.")
        if self.tpu_name not in (None, "local"):
            raise options_module.OptionError(
                f"--tpu_name={self.tpu_name} names a TPU of another machine. Run the "
                "command on the TPU VM, with --tpu_name=local or without it."
            )

    @property
    def jit_compile(self) -> bool | None:
        """Whether XLA compiles the step; None: `distribution.compiles_step` decides."""
        return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainerOptions(
    CheckpointOptions,
    EvaluationOptions,
    DeviceOptions,
    OptimizerOptions,
):
    """Everything that `loop.Trainer` takes, in one record."""

    flag_group: ClassVar[str] = "advanced"
    shuffle_buffer_size = 0  # Not a field: only pretraining has an option for it.

    iterations_per_loop: int = option(
        1000,
        minimum=1,
        help="Maximum number of steps per call from the host. A call takes fewer if it "
        "would last long, or if a checkpoint or an evaluation is due.",
        on_resume=options_module.FREE,
    )

    @property
    def length_buckets(self) -> tuple[int, ...]:
        """Lengths that batches are padded to, in ascending order; empty: one length."""
        return ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOptions(TrainerOptions):
    """Options that all training tools share: the trainer's, and what to do."""

    after_interrupt: ClassVar[str] = (
        "Run the same command again; training continues from its last checkpoint."
    )

    bert_config_file: str | None = option(
        None,
        help="JSON file with the model's configuration. Default: that of "
        "init_checkpoint, or of the run in output_dir.",
        group="model",
        on_resume=options_module.FREE,
    )
    vocab_file: str | None = option(
        None,
        help="Vocabulary, saved with the run. Default: that of init_checkpoint, or the "
        "one recorded in examples of pretraining.",
        group="model",
        on_resume=options_module.FREE,
    )
    do_train: bool = option(
        False,
        help="Train the model.",
        on_resume=options_module.FREE,
    )
    do_eval: bool = option(
        False,
        help="Evaluate the latest checkpoint in output_dir.",
        on_resume=options_module.FREE,
    )
    dry_run: bool = option(
        False,
        help="Take a few steps, print the model's size, number of steps, memory and "
        "the expected time, and exit. Nothing is saved.",
        on_resume=options_module.FREE,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlotRunOptions(options_module.Options):
    """Plots the losses, accuracies and learning rates of one or more runs."""

    run_dir: tuple[str, ...] = option(
        help="Folders of the runs (their output_dir), separated by commas."
    )
    plot_file: str | None = option(
        None,
        help="PNG, PDF or SVG file to write. Default: curves.png in the first folder.",
    )
    tensorboard: bool = option(
        False,
        help="Also write what TensorBoard lacks into each run: the baselines, and the "
        "confusion matrix as an image.",
    )
