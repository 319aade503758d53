"""Options of run_demo."""

import dataclasses
from typing import ClassVar

from bert_tf import options as options_module
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunDemoOptions(options_module.Options):
    """Runs the tools in turn, from raw text to a served answer, in minutes on a CPU.

    Each command is shown as you would type it. The demo ends with a report and keeps
    all its files in the output folder.
    """

    after_interrupt: ClassVar[str] = "The same command starts the demo again."

    output_dir: str = option(
        "demo_run",
        help="Folder for all files. The files of an earlier demo are replaced.",
    )
    corpus_file: str | None = option(
        None,
        help="Your own text to pretrain on; file names and globs, separated by commas. "
        "One sentence per line with blank lines between documents, or prose in "
        "paragraphs. Default: the sample text of the package.",
    )
    tiny: bool = option(
        False,
        help="For tests: a model that is too small, and trained too briefly, to learn.",
    )
