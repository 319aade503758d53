"""Options for data sets of TensorFlow Datasets."""

import dataclasses
from collections.abc import Sequence

from bert_tf import options as options_module
from bert_tf.fine_tuning import options as fine_tuning_options
from bert_tf.options import option

SPLITS = ("train", "validation", "test")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TfdsOptions(fine_tuning_options.TaskOptions):
    """Options of tools that read data sets of TensorFlow Datasets by name."""

    tfds_name: str | None = option(
        None,
        help="TensorFlow dataset to use instead of files. Requires bert_tf[datasets].",
    )
    tfds_splits: tuple[str, ...] = option(
        SPLITS,
        help="Splits of tfds_name: to train on, to evaluate on and to predict. By "
        "default, a split called dev serves as validation.",
    )

    def _check_tfds(self, files: Sequence[str]) -> None:
        """Raises an OptionError if the options of the data contradict each other.

        Args:
            files: options that name files, which cannot be combined with tfds_name.
        """
        if self.tfds_name is None:
            if not self.is_default("tfds_splits"):
                raise options_module.OptionError("--tfds_splits requires --tfds_name.")
            return
        self._refuse(files, "cannot be combined with --tfds_name")
        expected = len(self._default("tfds_splits"))
        if len(self.tfds_splits) != expected:
            raise options_module.OptionError(
                f"--tfds_splits={','.join(self.tfds_splits)}: expected {expected} "
                "splits."
            )
