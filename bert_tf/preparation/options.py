"""Options of prepare_corpus."""

import dataclasses
from typing import ClassVar

from bert_tf.data import parallel
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareCorpusOptions(parallel.RunnerOptions):
    """Turns raw text into one sentence per line, with blank lines between documents.

    Reads plain text, tables (JSON lines, too) and Wikipedia dumps, compressed or not.
    The output is the input of bert_tf vocabulary and bert_tf create-data.
    """

    after_interrupt: ClassVar[str] = (
        "Any finished parts are kept; run the same command again to continue."
    )

    input_file: tuple[str, ...] = option(
        help="Files, folders and globs, separated by commas. Files compressed with "
        "gzip or bzip2 are decompressed while they are read.",
    )
    output_dir: str = option(
        help="Folder for corpus-*.txt and report.json. Until a run is complete it "
        "also contains the finished work, from which the same command resumes."
    )
    format: str = option(
        "auto",
        choices=("auto", "prose", "table", "wikipedia"),
        help="prose: each file is a document. table: CSV, TSV, JSON lines or Parquet, "
        "each row a document. wikipedia: a dump. auto: by the extension, and prose for "
        "all other files.",
    )
    text_field: str = option("text", help="Column that contains the text.")
    language: str = option(
        "en", help="Language code, which determines the rules for sentence ends."
    )
    num_workers: int = option(
        1,
        minimum=1,
        help="Number of processes. The output does not depend on it.",
        group="devices",
    )
