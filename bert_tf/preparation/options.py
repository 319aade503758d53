"""Options of prepare_corpus."""

import dataclasses
from typing import ClassVar

from bert_tf.data import parallel
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareCorpusOptions(parallel.RunnerOptions):
    """Turns raw text into one sentence per line, with blank lines between documents.

    Reads plain text, JSON lines, tables and Wikipedia dumps, compressed or not. The
    output is the input of bert_tf vocabulary and bert_tf create-data.
    """

    after_interrupt: ClassVar[str] = (
        "Any finished parts are kept; run the same command again to continue."
    )

    input_file: tuple[str, ...] = option(
        help="Files, folders and globs, separated by commas. Files compressed with gz, "
        "bz2 or zst are decompressed while they are read.",
    )
    output_dir: str = option(
        help="Folder for corpus-*.txt and report.json. Until a run is complete it "
        "also contains the finished work, from which the same command resumes."
    )
    format: str = option(
        "auto",
        choices=("auto", "prose", "sentences", "json", "table", "wikipedia"),
        help="prose: each file is a document. sentences: one sentence per line, with "
        "blank lines between documents. json: one JSON object per line, each a "
        "document. table: CSV, TSV or Parquet, each row a document. wikipedia: a dump. "
        "auto: by the extension, and prose for all other files.",
    )
    text_field: str = option(
        "text", help="JSON field or column that contains the text."
    )
    language: str = option(
        "en", help="Language code, which determines the rules for sentence ends."
    )
    shard_mb: float = option(
        64.0,
        minimum=0.0001,
        help="Maximum size of an output file in MB. Larger documents are not split.",
        group="advanced",
    )
    num_workers: int = option(
        1,
        minimum=1,
        help="Number of processes. The output does not depend on it.",
        group="devices",
    )
