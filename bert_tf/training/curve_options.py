"""Options of plot_run."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlotRunOptions(options_module.Options):
    """Draws losses, accuracies and learning rate of one run or several."""

    run_dir: tuple[str, ...] = option(
        help="Folders of runs (their output_dir), commas between."
    )
    plot_file: str | None = option(
        None, help="PNG, PDF or SVG to write; default: curves.png in the first folder."
    )
