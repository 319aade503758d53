"""Options of prepare_corpus."""

import dataclasses

from bert_tf import options as options_module
from bert_tf.data.parallel import execution
from bert_tf.options import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareCorpusOptions(execution.RunnerOptions):
    """Makes text with a sentence a line and a blank line between documents.

    Reads plain text, JSON lines, Wikipedia dumps (all of them packed or not) and
    TensorFlow Datasets; build_vocabulary and create_pretraining_data read what it
    writes.
    """

    input_file: tuple[str, ...] = option(
        (),
        help="Files, folders and patterns, commas between; gz, bz2, zst and zip are "
        "unpacked while they are read.",
    )
    output_dir: str = option(
        help="Folder for corpus-*.txt and report.json. While a run goes on it also "
        "holds what is done, and the same command goes on with that."
    )
    format: str = option(
        "auto",
        choices=("auto", "prose", "sentences", "json", "wikipedia"),
        help="prose: a file is a document. sentences: a sentence a line, a blank line "
        "between documents. json: an object a line is a document. wikipedia: a dump. "
        "auto: by name, .json and .jsonl, .xml, and prose for all others.",
    )
    text_field: str = option(
        "text", help="Field of the JSON objects, or feature of the data set."
    )
    tfds_name: str | None = option(
        None, help="A data set of TensorFlow Datasets, such as wiki40b/de."
    )
    tfds_split: str = option("train", help="Split of the data set.")
    tfds_data_dir: str | None = option(
        None, help="Where the data set lies; default: where TensorFlow Datasets has it."
    )
    language: str = option(
        "en", help="Code of the language, by whose rules sentences end."
    )
    language_folders: bool = option(
        False,
        help="The folders below the one given, or the folder of a file given, are "
        "named by the code of their language.",
    )
    language_field: str | None = option(
        None, help="Field of the JSON objects, or feature, with the language's code."
    )
    language_smoothing: float | None = option(
        None,
        minimum=0.0,
        maximum=1.0,
        help="Take languages in proportion to their share of the characters to this "
        "power, so that small ones weigh more; 0.7 as in 2018. The size stays.",
    )
    deduplicate_paragraphs: bool = option(
        False,
        help="Keep the first only of paragraphs that are equal; not with "
        "--format=sentences, which has none.",
    )
    near_duplicates: bool = option(
        False,
        help="Keep the first only of documents that share about 80 % of their runs of "
        "five words.",
    )
    truncation_noise: float = option(
        0.0,
        minimum=0.0,
        maximum=1.0,
        help="Share of the sentences that is cut at a random place; the release's "
        "README advises 0.02.",
    )
    random_seed: int = option(12345, minimum=0, help="Fixes every draw.")
    shard_mb: float = option(
        64.0, minimum=0.0001, help="The most MB of a file written, a document apart."
    )
    num_workers: int = option(
        1, minimum=1, help="Processes; what is written does not depend on it."
    )

    def __post_init__(self):
        super().__post_init__()
        if not self.input_file and not self.tfds_name:
            raise options_module.OptionError(
                "--input_file: expected text, or --tfds_name with a data set, got "
                "neither."
            )
        if self.deduplicate_paragraphs and self.format == "sentences":
            raise options_module.OptionError(
                "--deduplicate_paragraphs: text of --format=sentences has no "
                "paragraphs; expected --near_duplicates, which compares documents."
            )
        has_languages = self.language_folders or self.language_field
        if self.language_smoothing is not None and not has_languages:
            raise options_module.OptionError(
                "--language_smoothing: expected --language_folders or "
                "--language_field, which tell the languages apart, got neither."
            )
