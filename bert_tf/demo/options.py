"""Options of run_demo."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunDemoOptions(options_module.Options):
    """Runs every tool in turn, from raw text to a served answer, in minutes on a CPU.

    Each command is shown as you would type it. At the end comes a report, and
    everything that was made stays in the output folder.
    """

    output_dir: str = option(
        "demo_run", help="Folder of what is made; that of an earlier demo is replaced."
    )
    corpus_file: str | None = option(
        None,
        help="Your own text to pretrain on, names and patterns with commas between: a "
        "sentence a line and a blank line between documents, or prose in paragraphs. "
        "Default: the text that comes with the package.",
    )
    tiny: bool = option(
        False, help="A model too small and too short of training to learn; for tests."
    )
